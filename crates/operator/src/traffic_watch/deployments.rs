//! A watch's Deployment: written once the watch is ready and its label is on every node, and whenever either of them
//! changed since. `replicas` are set apart from it, and only when the user wants others than before: what they wanted is
//! noted on the Deployment, so that a crash between two writes loses nothing.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use weir_api::place::names::{ConditionType, TOLD_REPLICAS_ANNOTATION};
use weir_place::{
    condition::{self, Said},
    deployment::{self, Ownership, Scale},
    moment::Moment,
    plan::WatchName,
};

use super::{
    context::Context,
    hands::WriteError,
    managed_fields,
    mind::{Judged, View},
    world::DeploymentSight,
};
use crate::events::NoteKind;

/// The API server refused it: it is tried again, as a quota may have grown.
const REFUSED_PAUSE: std::time::Duration = std::time::Duration::from_secs(30);
/// Noted on a Deployment that was made but not scaled yet.
const PENDING: &str = "pending";
/// Noted where the user says nothing of `replicas`.
const NOTHING: &str = "none";

/// What this process remembers of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keeping {
    /// The generations of the watch and of the Deployment that were last brought together.
    applied: Option<(i64, i64)>,
    /// The generation of the watch that the API server was asked about beforehand.
    asked: Option<i64>,
    /// What it said against it, and when.
    refused: Option<(i64, String, Moment)>,
    is_migrated: bool,
    is_stranger_told: bool,
}

/// What there is to decide by, beside the watch.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// The Deployment of its name.
    pub sight: Option<&'a DeploymentSight>,
    /// Who holds its key, if somebody else does.
    pub lost_to: Option<&'a WatchName>,
    /// Whether its label is on every node that it judges.
    pub is_shown: bool,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// Nothing; this is why, unless all is well.
    Nothing(Option<Said>),
    /// Ask the API server what it thinks of it.
    Ask,
    /// Write it, after `replicas` were set or before.
    Write {
        scale: Scale,
        is_new: bool,
        told: String,
    },
}

/// Does what is to be done. Gives what `Placed` says if it does not hold.
pub async fn keep(
    context: &Context,
    view: &View,
    judged: &Judged,
    around: Around<'_>,
    keeping: &mut Keeping,
) -> Result<Option<Said>, WriteError> {
    let now = context.now();
    let generation = view.object.metadata.generation.unwrap_or_default();
    let step = step(view, judged, around, keeping, now);
    let outcome = match step {
        Step::Nothing(said) => {
            tell_stranger(context, view, said.as_ref(), keeping);
            return Ok(said);
        }
        Step::Ask => {
            let object = deployment::build(&view.object);
            let asked = context.hands.apply_deployment(&view.id, &object, true);
            asked.await.map(|_| keeping.asked = Some(generation))
        }
        Step::Write {
            scale,
            is_new,
            told,
        } => {
            let wrote = write(context, view, around, keeping, scale, is_new, &told).await;
            wrote.map(|written| keeping.applied = Some((generation, written)))
        }
    };
    match outcome {
        Ok(()) => {
            keeping.refused = None;
            Ok((!judged.ready).then(not_yet))
        }
        Err(WriteError::Refused { message, .. }) => {
            let is_news = (keeping.refused.as_ref()).is_none_or(|(_, known, _)| *known != message);
            if is_news {
                let text = format!("the API server refuses the Deployment: {message}");
                context.tell(
                    &view.object,
                    NoteKind::Warning,
                    "DeploymentRefused",
                    "Apply",
                    text,
                );
            }
            let said = refused(&message);
            keeping.refused = Some((generation, message, now));
            Ok(Some(said))
        }
        Err(error) => Err(error),
    }
}

fn step(view: &View, judged: &Judged, around: Around<'_>, keeping: &Keeping, now: Moment) -> Step {
    let generation = view.object.metadata.generation.unwrap_or_default();
    if let Some(sight) = around.sight
        && let Ownership::Theirs(owner) = deployment::ownership(&sight.object, &view.object)
    {
        return Step::Nothing(Some(not_ours(owner.as_deref())));
    }
    if let Some(holder) = around.lost_to {
        let said = condition::key_held_by(holder, &judged.settings.key);
        return Step::Nothing(Some(said));
    }
    if let Some((of, message, at)) = &keeping.refused
        && *of == generation
        && now.since(*at) < REFUSED_PAUSE
    {
        return Step::Nothing(Some(refused(message)));
    }
    if !judged.ready {
        if keeping.asked == Some(generation) {
            return Step::Nothing(Some(not_yet()));
        }
        return Step::Ask;
    }
    if !around.is_shown {
        let waits = around.sight.is_none().then(not_yet);
        return Step::Nothing(waits);
    }
    let wanted = deployment::replicas(&view.object);
    let told = wanted.map_or_else(|| NOTHING.to_owned(), |wanted| wanted.to_string());
    let Some(sight) = around.sight else {
        return Step::Write {
            scale: deployment::scale(wanted, None, true),
            is_new: true,
            told,
        };
    };
    let is_right = sight.told.as_deref() == Some(told.as_str())
        && keeping.applied == Some((generation, sight.generation));
    if is_right {
        return Step::Nothing(None);
    }
    let was_told = sight.told.as_deref().and_then(|told| told.parse().ok());
    let was_never_set = matches!(sight.told.as_deref(), Some(PENDING | NOTHING));
    Step::Write {
        scale: deployment::scale(wanted, was_told, was_never_set),
        is_new: false,
        told,
    }
}

/// Gives the Deployment's generation.
async fn write(
    context: &Context,
    view: &View,
    around: Around<'_>,
    keeping: &mut Keeping,
    scale: Scale,
    is_new: bool,
    told: &str,
) -> Result<i64, WriteError> {
    let (hands, id) = (&context.hands, &view.id);
    if !is_new && !keeping.is_migrated {
        let live = hands.read_deployment(id).await?;
        let entries = live.metadata.managed_fields.clone().unwrap_or_default();
        if let Some(entries) = managed_fields::migrated(&entries) {
            hands.set_managed_fields(&live, &entries).await?;
        }
    }
    keeping.is_migrated = true;
    let object = deployment::build(&view.object);
    if let Scale::To(replicas) = scale {
        if is_new {
            let pending = with_told(object.clone(), PENDING);
            hands.apply_deployment(id, &pending, false).await?;
        }
        hands.scale(id, replicas).await?;
    }
    let written = hands
        .apply_deployment(id, &with_told(object, told), false)
        .await?;
    if is_new {
        let text = "the Deployment was made, and keeps off unfit nodes".to_owned();
        context.tell(
            &view.object,
            NoteKind::Normal,
            "DeploymentCreated",
            "Apply",
            text,
        );
    } else if looks_elsewhere(view, around) {
        let text = "the node label has changed: the Deployment is rolled out with the new one, then the old one leaves the nodes".to_owned();
        context.tell(
            &view.object,
            NoteKind::Normal,
            "LabelChanged",
            "Apply",
            text,
        );
    }
    Ok(written.metadata.generation.unwrap_or_default())
}

/// Whether the Deployment as it stands looks at another key than the one it should.
fn looks_elsewhere(view: &View, around: Around<'_>) -> bool {
    let key = weir_api::place::names::unfit_label_key(view.object.label_prefix());
    around.sight.is_some_and(|sight| {
        let keys = deployment::keys_in_use(&sight.object, &view.object);
        !keys.is_empty() && !keys.contains(&key)
    })
}

fn with_told(mut object: Value, told: &str) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let annotations = json!({ TOLD_REPLICAS_ANNOTATION: told });
        metadata.insert("annotations".to_owned(), annotations);
    }
    object
}

fn tell_stranger(context: &Context, view: &View, said: Option<&Said>, keeping: &mut Keeping) {
    let stranger = said.filter(|said| said.reason == NOT_OURS);
    let was_told = std::mem::replace(&mut keeping.is_stranger_told, stranger.is_some());
    if let Some(said) = stranger.filter(|_| !was_told) {
        let text = said.message.clone();
        context.tell(&view.object, NoteKind::Warning, NOT_OURS, "Apply", text);
    }
}

const NOT_OURS: &str = "DeploymentNotOurs";

fn not_ours(owner: Option<&str>) -> Said {
    let whose = owner.map_or_else(
        || "nobody's, as far as it says".to_owned(),
        |owner| format!("that of {owner}"),
    );
    placed(
        NOT_OURS,
        format!(
            "a Deployment of this name is there and is {whose}: it is left alone; delete it, or give this watch another name"
        ),
    )
}

fn refused(message: &str) -> Said {
    let message = format!("the API server refuses the Deployment: {message}");
    placed("DeploymentRefused", message)
}

fn not_yet() -> Said {
    placed(
        "NotYet",
        "the Deployment is written when every node has been measured and labelled".to_owned(),
    )
}

fn placed(reason: &'static str, message: String) -> Said {
    Said {
        type_: ConditionType::Placed,
        holds: false,
        reason,
        message,
    }
}
