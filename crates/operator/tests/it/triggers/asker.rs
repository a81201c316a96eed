//! A board with the task behind it, and ears for what it tells.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout},
};
use weir_api::hold::Trigger;
use weir_hold::facts::Triggers;
use weir_operator::elasti_service::triggers::{Board, TriggerSettings, Verdict, client::Client};
use weir_role::cluster::ObjectId;

const PATIENCE: Duration = Duration::from_mins(1);
const COOLDOWN: Duration = Duration::from_mins(15);

pub(crate) struct Asker {
    pub(crate) board: Board,
    /// How often something was told.
    told: watch::Receiver<u64>,
    outcomes: Arc<Mutex<Vec<&'static str>>>,
    task: JoinHandle<()>,
    pub(crate) cooldown: Duration,
}

impl Asker {
    pub(crate) fn start(client: Client, settings: TriggerSettings) -> Self {
        let asker = Self::start_asleep(client, settings);
        asker.board.set_active(true);
        asker
    }

    pub(crate) fn start_asleep(client: Client, settings: TriggerSettings) -> Self {
        let (tell, told) = watch::channel(0);
        let outcomes = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&outcomes);
        let (board, work) = Board::start_with(
            client,
            settings,
            Arc::new(move |_| tell.send_modify(|count| *count += 1)),
            Arc::new(move |outcome| heard.lock().unwrap().push(outcome)),
        );
        Self {
            board,
            told,
            outcomes,
            task: tokio::spawn(work),
            cooldown: COOLDOWN,
        }
    }

    /// Prometheus triggers with this metadata.
    pub(crate) fn set(&self, name: &str, metadata: &[Value]) {
        let trigger = |metadata| json!({"type": "prometheus", "metadata": metadata});
        let triggers: Vec<Trigger> = metadata
            .iter()
            .map(|metadata| serde_json::from_value(trigger(metadata)).unwrap())
            .collect();
        self.board.set(object(name), &triggers, self.cooldown);
    }

    pub(crate) fn verdict(&self, name: &str) -> Verdict {
        self.board.verdict(&object(name))
    }

    /// Waits for a verdict; each look is after something was told.
    pub(crate) async fn until(&mut self, name: &str, is_so: impl Fn(&Verdict) -> bool) -> Verdict {
        let listen = async {
            loop {
                self.told.mark_unchanged();
                let verdict = self.board.verdict(&object(name));
                if is_so(&verdict) {
                    return verdict;
                }
                self.told.changed().await.expect("the board's task goes on");
            }
        };
        let heard = timeout(PATIENCE, listen).await.ok();
        heard.unwrap_or_else(|| panic!("{name} is {:?} instead", self.verdict(name)))
    }

    /// Reads until it is so, where nobody tells.
    pub(crate) async fn reads(&self, name: &str, triggers: Triggers) {
        let began = Instant::now();
        while self.verdict(name).triggers != triggers {
            assert!(began.elapsed() < PATIENCE, "{:?}", self.verdict(name));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How the questions ended so far, in alphabetical order.
    pub(crate) fn outcomes(&self) -> Vec<&'static str> {
        let mut outcomes = self.outcomes.lock().unwrap().clone();
        outcomes.sort_unstable();
        outcomes
    }

    /// Ends the work behind the board.
    pub(crate) async fn stop(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn object(name: &str) -> ObjectId {
    ObjectId::new("default", name)
}
