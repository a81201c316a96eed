//! What one watch says, put together: a list arrives object by object, and counts only when it is complete.
//!
//! What of it is told before that says only that these objects are there, which is true in any case; who is not among them
//! is gone, and that is told at the end.

use kube::{Resource, core::DeserializeGuard, runtime::watcher};

use super::{ObjectId, Update};

/// A list as it grows.
pub(super) struct Listing<K> {
    namespace: Option<String>,
    telling: Telling,
    objects: Vec<K>,
    /// Those that are there and not among the objects: they cannot be read, or were told already.
    others: Vec<ObjectId>,
}

/// When the objects of a list are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Telling {
    /// All together.
    Together,
    /// Each when it comes: a list of thousands is never held whole.
    Singly,
}

/// What an event comes to.
#[derive(Debug)]
pub(super) enum Heard<K> {
    Nothing,
    Update(Update<K>),
    /// An object of a form that we do not know, and what is odd about it. What was known of it stays.
    Unreadable(ObjectId, String),
}

impl<K: Resource<DynamicType = ()>> Listing<K> {
    pub(super) fn new(namespace: Option<String>, telling: Telling) -> Self {
        Self {
            namespace,
            telling,
            objects: Vec::new(),
            others: Vec::new(),
        }
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    pub(super) fn hear(&mut self, event: watcher::Event<DeserializeGuard<K>>) -> Heard<K> {
        match event {
            watcher::Event::Init => {
                self.objects.clear();
                self.others.clear();
                Heard::Nothing
            }
            watcher::Event::InitApply(object) => match readable(object) {
                Ok(object) if self.telling == Telling::Singly => {
                    self.others.push(ObjectId::of(&object));
                    Heard::Update(Update::Set(Box::new(object)))
                }
                Ok(object) => {
                    self.objects.push(object);
                    Heard::Nothing
                }
                Err((id, error)) => {
                    self.others.push(id.clone());
                    Heard::Unreadable(id, error)
                }
            },
            watcher::Event::InitDone => Heard::Update(Update::Restarted {
                namespace: self.namespace.clone(),
                objects: std::mem::take(&mut self.objects),
                unreadable: std::mem::take(&mut self.others),
            }),
            watcher::Event::Apply(object) => match readable(object) {
                Ok(object) => Heard::Update(Update::Set(Box::new(object))),
                Err((id, error)) => Heard::Unreadable(id, error),
            },
            watcher::Event::Delete(object) => Heard::Update(Update::Gone(ObjectId::of(&object))),
        }
    }
}

/// Half of an object's size is who changed what, which nobody here asks.
fn readable<K: Resource>(object: DeserializeGuard<K>) -> Result<K, (ObjectId, String)>
where
    K::DynamicType: Default,
{
    let id = ObjectId::of(&object);
    match object.0 {
        Ok(mut object) => {
            object.meta_mut().managed_fields = None;
            Ok(object)
        }
        Err(invalid) => Err((id, invalid.error)),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;
    use serde_json::{Value, json};

    use super::*;

    fn object(value: Value) -> DeserializeGuard<Service> {
        serde_json::from_value(value).unwrap()
    }

    fn good(name: &str) -> DeserializeGuard<Service> {
        object(json!({"metadata": {"name": name, "namespace": "shop", "managedFields": [{}]}}))
    }

    fn bad(name: &str) -> DeserializeGuard<Service> {
        object(json!({"metadata": {"name": name, "namespace": "shop"}, "spec": {"ports": "many"}}))
    }

    #[test]
    fn a_list_counts_when_it_is_complete_and_bad_objects_are_only_noted() {
        let mut listing = Listing::new(Some("shop".to_owned()), Telling::Together);
        assert!(matches!(listing.hear(watcher::Event::Init), Heard::Nothing));
        listing.hear(watcher::Event::InitApply(good("lost")));
        // The list began anew.
        listing.hear(watcher::Event::Init);
        listing.hear(watcher::Event::InitApply(good("a")));
        let heard = listing.hear(watcher::Event::InitApply(bad("b")));
        assert!(matches!(heard, Heard::Unreadable(id, _) if id == ObjectId::new("shop", "b")));
        let heard = listing.hear(watcher::Event::InitDone);
        let Heard::Update(Update::Restarted {
            namespace,
            objects,
            unreadable,
        }) = heard
        else {
            panic!("{heard:?}")
        };
        assert_eq!(namespace.as_deref(), Some("shop"));
        assert_eq!(objects.len(), 1);
        assert_eq!(objects[0].metadata.managed_fields, None);
        assert_eq!(unreadable, [ObjectId::new("shop", "b")]);
    }

    #[test]
    fn told_singly_none_is_held_and_the_end_says_who_is_there() {
        let mut listing = Listing::new(None, Telling::Singly);
        listing.hear(watcher::Event::Init);
        let heard = listing.hear(watcher::Event::InitApply(good("gone")));
        assert!(
            matches!(heard, Heard::Update(Update::Set(object)) if object.metadata.managed_fields.is_none())
        );
        // The list began anew: who is not in the second one is gone.
        listing.hear(watcher::Event::Init);
        listing.hear(watcher::Event::InitApply(good("a")));
        listing.hear(watcher::Event::InitApply(bad("b")));
        assert!(listing.objects.is_empty());
        let heard = listing.hear(watcher::Event::InitDone);
        let Heard::Update(Update::Restarted {
            objects,
            unreadable,
            ..
        }) = heard
        else {
            panic!("{heard:?}")
        };
        assert!(objects.is_empty());
        let there = ["a", "b"].map(|name| ObjectId::new("shop", name));
        assert_eq!(unreadable, there);
    }

    #[test]
    fn a_bad_object_can_still_be_deleted() {
        let mut listing = Listing::new(None, Telling::Together);
        let heard = listing.hear(watcher::Event::Apply(bad("b")));
        assert!(matches!(heard, Heard::Unreadable(..)));
        let heard = listing.hear(watcher::Event::Delete(bad("b")));
        assert!(matches!(heard, Heard::Update(Update::Gone(_))));
    }
}
