//! Who gets what where several may have the same: each entry of a statement one line of the books
//! at most, and each line one entry. Pure.

use std::collections::{HashMap, VecDeque};

use crate::money::Overflow;

/// Lines of the books, by their numbers, and the entries that have them.
pub(super) struct Pairs {
    owners: Vec<Option<usize>>,
    /// Those that nobody else can ever get: whoever has one may have none but such ones.
    is_closed: Vec<bool>,
}

impl Pairs {
    /// So many lines, of which nobody has any.
    pub(super) fn of(lines: usize) -> Self {
        Self { owners: vec![None; lines], is_closed: vec![false; lines] }
    }

    /// Gives an entry the first free one of the lines that it may have. Where others have all of
    /// them, one of those goes over to another line that it may have as well, and so on, in as few
    /// steps as can be: so an entry goes without only where no way leaves fewer of them without.
    ///
    /// # Errors
    /// It cannot be said which lines an entry may have.
    pub(super) fn give(
        &mut self,
        entry: usize,
        own: &[usize],
        may_have: impl Fn(usize) -> Result<Vec<usize>, Overflow>,
    ) -> Result<bool, Overflow> {
        if let Some(free) = own.iter().find(|line| self.owners[**line].is_none()) {
            self.owners[*free] = Some(entry);
            return Ok(true);
        }
        // Who would get a line that was come to, and which one he has now.
        let mut came_by: HashMap<usize, (usize, Option<usize>)> = HashMap::new();
        let mut waiting = VecDeque::from([(entry, None)]);
        while let Some((next, has)) = waiting.pop_front() {
            for line in may_have(next)? {
                if self.is_closed[line] || came_by.contains_key(&line) {
                    continue;
                }
                came_by.insert(line, (next, has));
                let Some(owner) = self.owners[line] else {
                    self.hand_on(line, &came_by);
                    return Ok(true);
                };
                waiting.push_back((owner, Some(line)));
            }
        }
        // Nobody among them can go anywhere else, whoever comes later.
        for line in came_by.into_keys() {
            self.is_closed[line] = true;
        }
        Ok(false)
    }

    /// Gives a line that nobody has to whoever would get it, the one that he had to the next, and
    /// so on.
    fn hand_on(&mut self, free: usize, came_by: &HashMap<usize, (usize, Option<usize>)>) {
        let mut next = Some(free);
        while let Some(line) = next {
            let by = came_by.get(&line);
            self.owners[line] = by.map(|(entry, _)| *entry);
            next = by.and_then(|(_, had)| *had);
        }
    }

    /// Which lines somebody has.
    pub(super) fn taken(&self) -> Vec<bool> {
        self.owners.iter().map(Option::is_some).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Who has each line, where each entry may have these.
    fn given(lines: usize, may_have: &[Vec<usize>]) -> (Vec<Option<usize>>, usize) {
        let mut pairs = Pairs::of(lines);
        let lines_for = |entry: usize| Ok::<_, Overflow>(may_have[entry].clone());
        let each = (0..may_have.len()).map(|it| pairs.give(it, &may_have[it], lines_for));
        let count = each.filter(|given| *given == Ok(true)).count();
        (pairs.owners, count)
    }

    #[test]
    fn whoever_came_first_goes_over_to_another_line_that_it_may_have() {
        let (owners, count) = given(2, &[vec![0, 1], vec![0]]);
        assert_eq!((owners, count), (vec![Some(1), Some(0)], 2));
        // In a row: each makes room for the one after it.
        let (owners, count) = given(3, &[vec![0, 1], vec![1, 2], vec![0], vec![0]]);
        assert_eq!((owners, count), (vec![Some(2), Some(0), Some(1)], 3));
        // What is first is taken where nobody else wants it.
        let (owners, count) = given(3, &[vec![2, 0], vec![1], vec![]]);
        assert_eq!((owners, count), (vec![None, Some(1), Some(0)], 2));
    }

    /// The most entries that can have a line, by trying everything.
    fn most(may_have: &[Vec<usize>], taken: &mut Vec<usize>) -> usize {
        let Some((first, rest)) = may_have.split_first() else { return 0 };
        let mut best = most(rest, taken);
        for line in first {
            if !taken.contains(line) {
                taken.push(*line);
                best = best.max(1 + most(rest, taken));
                taken.pop();
            }
        }
        best
    }

    proptest! {
        #[test]
        fn as_many_as_can_be_have_one(
            may_have in prop::collection::vec(prop::collection::vec(0_usize..5, 0..4), 0..6),
        ) {
            let (owners, count) = given(5, &may_have);
            prop_assert_eq!(count, most(&may_have, &mut Vec::new()));
            prop_assert_eq!(count, owners.iter().flatten().count());
            for (line, owner) in owners.iter().enumerate() {
                prop_assert!(owner.is_none_or(|owner| may_have[owner].contains(&line)));
            }
        }
    }
}
