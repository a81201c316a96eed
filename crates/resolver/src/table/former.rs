//! Backends that are led to no more, of services, ports and names that have changed, as long as what began there is open: it is
//! use of the service that is there under the same name now.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};

use weir_role::metrics::lock;
use weir_wire::backend::Backend;

use crate::view::ServiceId;

/// More than that many services with such backends are not kept without a look at which of them are over.
const FEW: usize = 64;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Former(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    backends: HashMap<ServiceId, Vec<Weak<Backend>>>,
    /// When there are so many services, a look is due.
    look_at: usize,
}

impl Former {
    /// Nothing new is led to this one.
    pub(super) fn add(&self, service: &ServiceId, backend: &Arc<Backend>) {
        let mut inner = lock(&self.0);
        let of_service = inner.backends.entry(service.clone()).or_default();
        of_service.retain(|it| it.strong_count() > 0);
        of_service.push(Arc::downgrade(backend));
        if inner.backends.len() > inner.look_at.max(FEW) {
            inner.backends.retain(|_, of_service| {
                of_service.retain(|it| it.strong_count() > 0);
                !of_service.is_empty()
            });
            inner.look_at = inner.backends.len() * 2;
        }
    }

    /// What is open of a service.
    pub(super) fn open(&self, service: &ServiceId) -> usize {
        let inner = lock(&self.0);
        let of_service = inner.backends.get(service).into_iter().flatten();
        let open = of_service.filter_map(Weak::upgrade);
        open.map(|backend| backend.usage().open).sum()
    }
}
