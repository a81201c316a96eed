//! What the controller keeps of each object that it watches: only what a decision is made of, so that ten thousand fit in
//! little memory and changes of anything else go unnoticed.
//!
//! A [`Sight`] is one ElastiService with all that matters to it. `world` gives it from what the watches said, `fresh`
//! from the API server itself; `dereference` makes facts of either.

mod hpa;
mod service;
mod slice;
mod workload;

use std::sync::Arc;

use weir_api::hold::InForce;

pub use self::{
    hpa::Hpa,
    service::{PortSight, ServiceSight},
    slice::{PodSight, SliceSight},
    workload::{Rollout, Workload},
};
pub use weir_wake::{Kind, OtherKind, ScaledObject, Scaler};

/// One ElastiService and all that matters to it.
#[derive(Clone, Debug)]
pub struct Sight {
    /// The object.
    pub object: Arc<InForce>,
    /// Its public Service.
    pub service: Option<Arc<ServiceSight>>,
    /// Its target.
    pub target: Seen<Workload>,
    /// All slices of the Service, ours as well.
    pub slices: Vec<Arc<SliceSight>>,
    /// Its ScaledObject.
    pub scaler: Seen<Scaler>,
    /// Its HorizontalPodAutoscaler.
    pub hpa: Option<Arc<Hpa>>,
}

/// Something that may be there or not, or of which nothing is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen<T> {
    /// It is there.
    There(Arc<T>),
    /// It is not.
    Missing,
    /// Its kind is not installed.
    NoSuchKind,
    /// Its kind was not listed yet: nothing may be decided.
    NotYet,
}

impl<T> Seen<T> {
    /// It, if it is there.
    pub fn there(&self) -> Option<&Arc<T>> {
        match self {
            Self::There(it) => Some(it),
            Self::Missing | Self::NoSuchKind | Self::NotYet => None,
        }
    }
}
