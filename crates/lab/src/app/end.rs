//! How the server ends: not yet, well, or badly. Everyone who waits for something watches this as well.

use tokio::sync::watch;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    NotYet,
    /// Nothing new is begun; what is under way is finished.
    Draining,
    /// Everything is dropped where it stands; why.
    Crashed(String),
}

pub(super) struct End(watch::Sender<Ending>);

impl Default for End {
    fn default() -> Self {
        Self(watch::Sender::new(Ending::NotYet))
    }
}

impl End {
    pub(super) fn now(&self) -> Ending {
        self.0.borrow().clone()
    }

    pub(super) fn drain(&self) {
        self.0.send_if_modified(|ending| {
            let is_new = *ending == Ending::NotYet;
            if is_new {
                *ending = Ending::Draining;
            }
            is_new
        });
    }

    pub(super) fn crash(&self, why: &str) {
        self.0.send_replace(Ending::Crashed(why.to_owned()));
    }

    /// Returns once the server drains or has crashed.
    pub(super) async fn begun(&self) {
        self.until(|ending| *ending != Ending::NotYet).await;
    }

    /// Returns once the server has crashed.
    pub(super) async fn crashed(&self) {
        self.until(|ending| matches!(ending, Ending::Crashed(_)))
            .await;
    }

    async fn until(&self, is_so: impl FnMut(&Ending) -> bool) {
        // Fails only without a sender, and we are the sender.
        let _ = self.0.subscribe().wait_for(is_so).await;
    }
}
