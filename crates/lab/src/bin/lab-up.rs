//! Starts a cluster and ends: the starter that this crate's tests kill halfway.
//!
//! `lab-up <name> <nodes>`

use weir_lab::{
    cache::Cache,
    cluster::{Cluster, Options},
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: lab-up <name> <nodes>";
    let mut arguments = std::env::args().skip(1);
    let options = Options {
        name: arguments.next().ok_or(usage)?,
        nodes: arguments.next().ok_or(usage)?.parse()?,
        add_ons: Vec::new(),
    };
    Cluster::up(&Cache::of_environment()?, &options, &mut |_| {})?;
    Ok(())
}
