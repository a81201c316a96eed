//! Work without I/O that takes its time in a large cluster, in [`super::look`].

use tokio::task::block_in_place;

/// Works out something that takes its time in a large cluster: some seconds, if the processor is busy. Whoever asks exporters
/// goes on meanwhile. A thread that were just kept busy might be the one that looks after timers and sockets for all.
pub fn think<T>(work: impl FnOnce() -> T) -> T {
    block_in_place(work)
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn timers_of_others_go_on_meanwhile() {
        let (tell, told) = mpsc::channel();
        let thinking = tokio::spawn(async move { think(|| told.recv_timeout(PATIENCE)) });
        let other = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            tell.send(())
        });
        thinking.await.unwrap().expect("the other was not kept");
        other.await.unwrap().unwrap();
    }
}
