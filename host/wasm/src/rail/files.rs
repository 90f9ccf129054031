//! Calls about whole files.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::Instance;

use super::{
    Arrival, Assembled, Called, Delivery, File, Grant, Guest, Notice, Opening, Payment, Presence,
    RailCode, Refusal, Size, Window, exports, not_offered,
};

impl RailCode {
    /// `files.prepare`
    pub async fn prepare_for_file(
        &self,
        grant: &Arc<Grant>,
        payment: &Payment,
    ) -> Called<Result<Opening, Refusal>> {
        let Some(indices) = &self.files else { return not_offered("files") };
        self.call(grant, async |store, instance| {
            let guest = indices.load(&mut *store, instance)?;
            guest.call_prepare(store, payment).await
        })
        .await
    }

    /// `files.assemble`
    pub async fn assemble(
        &self,
        grant: &Arc<Grant>,
        window: &Window,
        payments: &[Payment],
    ) -> Called<Result<Assembled, String>> {
        self.of_file(grant, async |guest, store| guest.call_assemble(store, window, payments).await)
            .await
    }

    /// `files.deliver`
    pub async fn deliver(&self, grant: &Arc<Grant>, file: &File) -> Called<Delivery> {
        self.of_file(grant, async |guest, store| guest.call_deliver(store, file).await).await
    }

    /// `files.look`
    pub async fn look(&self, grant: &Arc<Grant>, file: &File) -> Called<Presence> {
        self.of_file(grant, async |guest, store| guest.call_look(store, file).await).await
    }

    /// `files.poll`
    pub async fn poll(
        &self,
        grant: &Arc<Grant>,
        (feed, after): (&str, &str),
    ) -> Called<Result<Vec<Arrival>, String>> {
        self.of_file(grant, async |guest, store| guest.call_poll(store, feed, after).await).await
    }

    /// `files.read`
    pub async fn read(
        &self,
        grant: &Arc<Grant>,
        (feed, name): (&str, &str),
        content: &[u8],
    ) -> Called<Result<Vec<Notice>, String>> {
        self.of_file(grant, async |guest, store| guest.call_read(store, feed, name, content).await)
            .await
    }

    /// A call with what a whole file may cost.
    async fn of_file<T>(
        &self,
        grant: &Arc<Grant>,
        run: impl AsyncFnOnce(exports::files::Guest, &mut Store<Guest>) -> wasmtime::Result<T>,
    ) -> Called<T> {
        let Some(indices) = &self.files else { return not_offered("files") };
        let calling =
            self.call_in((None, Size::File), grant, async |store, instance: &Instance| {
                let guest = indices.load(&mut *store, instance)?;
                run(guest, store).await
            });
        calling.await.0
    }
}
