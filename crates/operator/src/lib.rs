//! The controllers of Weir, one module each, and what they share.
//!
//! - [`elasti_service`]: hold's, which puts a target to sleep and wakes it;
//! - [`traffic_watch`]: place's, which keeps pods off nodes whose network is full;
//! - [`resolvers`]: which resolvers are there, and what each of them knows;
//! - [`leader`]: only one process at a time puts anything to sleep;
//! - [`admin`]: the operator's ports: wake signals, metrics, health;
//! - [`events`], [`metrics`]: what it tells;
//! - [`token`], [`trust`]: who it says it is to exporters and kubelets, and whom of them it believes;
//! - [`settings`]: what can be set; [`role`]: the process.

pub mod admin;
pub mod elasti_service;
pub mod events;
pub mod leader;
pub mod metrics;
pub mod resolvers;
pub mod role;
pub mod settings;
pub mod token;
pub mod traffic_watch;
pub mod trust;
