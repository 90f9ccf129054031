//! JSON as it is documented, and no other. Left to itself, the reader takes a list for an object
//! whose members come in order, and the last of members that have one name.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

/// What stands in an object.
#[derive(Clone, Copy, Debug)]
pub struct Object<T>(pub T);

/// An object whose members have names of the sender's choice, each of them once.
#[derive(Clone, Debug)]
pub struct Unrepeated<T>(pub BTreeMap<String, T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InObject(PhantomData))
    }
}

struct InObject<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for InObject<T> {
    type Value = Object<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Object)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Unrepeated<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Once(PhantomData))
    }
}

struct Once<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Once<T> {
    type Value = Unrepeated<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Unrepeated<T>, A::Error> {
        let mut read = BTreeMap::new();
        while let Some((name, value)) = members.next_entry()? {
            if read.insert(name, value).is_some() {
                return Err(A::Error::custom("a member stands twice"));
            }
        }
        Ok(Unrepeated(read))
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::{Object, Unrepeated};

    #[derive(Deserialize)]
    struct Amount {
        pounds: Box<RawValue>,
    }

    #[test]
    fn a_list_is_no_object() {
        let read = |text| serde_json::from_str::<Object<Amount>>(text);
        assert_eq!(read("{\"pounds\":1.50}").expect("an object").0.pounds.get(), "1.50");
        for text in ["[1.50]", "[{\"pounds\":1.50}]", "1.50", "null", "{}"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read("{\"pounds\":1,\"pounds\":1}").is_err());
    }

    #[test]
    fn no_name_stands_twice() {
        let read = |text| serde_json::from_str::<Unrepeated<u8>>(text);
        assert_eq!(read("{\"a\":1,\"b\":1}").expect("an object").0.len(), 2);
        for text in ["{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":1,\"\\u0061\":1}", "[1]", "[]"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
