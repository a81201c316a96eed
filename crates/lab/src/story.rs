//! What Kubernetes itself has to say about a namespace, for the message of a test that failed there.
//!
//! Used by [`crate::Namespace::eventually`]. It is told as far as it can be had: nothing here fails.

use std::{fmt::Write, time::Duration};

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::{
    Api,
    api::{ListParams, LogParams},
};

use crate::Namespace;

/// How long all of it may take: the test has failed already.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_EVENTS: usize = 30;
const MOST_PODS: u32 = 5;
const LINES_OF_LOG: i64 = 20;

/// The namespace's last Events and the ends of its pods' logs.
pub(crate) async fn of(namespace: &Namespace) -> String {
    let told = async {
        let mut story = events(namespace).await;
        story.push_str(&logs(namespace).await);
        story
    };
    let told = tokio::time::timeout(PATIENCE, told).await;
    told.unwrap_or_else(|_| {
        format!(
            "({} s were not enough to ask Kubernetes)",
            PATIENCE.as_secs()
        )
    })
}

async fn events(namespace: &Namespace) -> String {
    let mut story = format!("Events in {}:\n", namespace.name());
    match namespace.api::<Event>().list(&ListParams::default()).await {
        Ok(list) => {
            let mut events = list.items;
            events.sort_by(|a, b| {
                a.metadata
                    .creation_timestamp
                    .cmp(&b.metadata.creation_timestamp)
            });
            let first = events.len().saturating_sub(MOST_EVENTS);
            for event in &events[first..] {
                story.push_str(&line(event));
            }
            if events.is_empty() {
                story.push_str("  (none)\n");
            }
        }
        // Writing to a string does not fail.
        Err(error) => drop(writeln!(story, "  (cannot be had: {error})")),
    }
    story
}

fn line(event: &Event) -> String {
    let or_nothing = |text: &Option<String>| text.clone().unwrap_or_default();
    let about = &event.involved_object;
    format!(
        "  {} {} {}/{}: {}\n",
        or_nothing(&event.type_),
        or_nothing(&event.reason),
        or_nothing(&about.kind),
        or_nothing(&about.name),
        or_nothing(&event.message),
    )
}

async fn logs(namespace: &Namespace) -> String {
    let pods: Api<Pod> = namespace.api();
    let mut story = String::new();
    let some = ListParams::default().limit(MOST_PODS);
    let Ok(list) = pods.list(&some).await else {
        return story;
    };
    for pod in list {
        let name = pod.metadata.name.unwrap_or_default();
        for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
            let end = LogParams {
                container: Some(container.name.clone()),
                tail_lines: Some(LINES_OF_LOG),
                ..LogParams::default()
            };
            let log = pods.logs(&name, &end).await;
            let log = log.unwrap_or_else(|error| format!("(cannot be had: {error})"));
            let _ = writeln!(
                story,
                "Log of {name}/{}:\n{}",
                container.name,
                log.trim_end()
            );
        }
    }
    story
}
