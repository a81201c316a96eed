//! Takes a server, says where it is, and waits: the user that this crate's tests kill in various ways.
//!
//! `lab-hold <state directory>`; it ends when its standard input does, or panics if told `panic` there.

#![allow(clippy::print_stdout, clippy::panic, reason = "a program for tests")]

use std::{io, path::PathBuf};

use weir_lab::{cache::Cache, server::Server, tools::Programs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args_os()
        .nth(1)
        .ok_or("usage: lab-hold <state directory>")?;
    let programs = Programs::of(&Cache::of_environment()?);
    let server = Server::take(&PathBuf::from(directory), &programs)?;
    println!("{}", server.kubeconfig().display());

    let mut told = String::new();
    io::stdin().read_line(&mut told)?;
    assert!(told.trim() != "panic", "as told");
    Ok(())
}
