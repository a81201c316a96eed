//! `lab-app tls`: what a client meets that speaks TLS to the very end. It says first which server it was asked for, so that
//! a client sees who has read its handshake, and then gives back what it is sent.

use std::{
    error::Error, io, net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc, time::Duration,
};

use clap::Args;
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    io::{AsyncWriteExt, copy, split},
    net::{TcpListener, TcpStream},
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use super::either;

/// How long connections may last after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(super) struct Tls {
    /// Where to listen
    #[arg(long, default_value = "0.0.0.0:8443")]
    listen: SocketAddr,
    /// The server's certificate and those that it follows from, as PEM
    #[arg(long, default_value = "/tls/tls.crt")]
    certificate: PathBuf,
    /// The key that belongs to it, as PEM
    #[arg(long, default_value = "/tls/tls.key")]
    key: PathBuf,
}

pub(super) async fn serve(arguments: Tls) -> Result<ExitCode, Box<dyn Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let acceptor = TlsAcceptor::from(Arc::new(configuration(&arguments)?));
    let listener = TcpListener::bind(arguments.listen).await?;
    println!("TLS on {}", listener.local_addr()?);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                let acceptor = acceptor.clone();
                connections.spawn(async move {
                    // How it ended is the client's business.
                    let _ = echo(&acceptor, stream).await;
                });
            }
            Some(_) = connections.join_next() => {}
            () = either(&mut terminate, &mut interrupt) => break,
        }
    }
    drop(listener);
    let _ = timeout(GRACE, connections.join_all()).await;
    Ok(ExitCode::SUCCESS)
}

fn configuration(arguments: &Tls) -> Result<ServerConfig, Box<dyn Error>> {
    let Tls {
        certificate, key, ..
    } = arguments;
    let certificates = CertificateDer::pem_file_iter(certificate)?.collect::<Result<_, _>>()?;
    let configuration = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_file(key)?)?;
    Ok(configuration)
}

async fn echo(acceptor: &TlsAcceptor, stream: TcpStream) -> io::Result<()> {
    // Only fails on a socket that is gone, as the next read will find out.
    let _ = stream.set_nodelay(true);
    let mut stream = acceptor.accept(stream).await?;
    let name = stream.get_ref().1.server_name().unwrap_or("-");
    let greeting = format!("{name}\r\n");
    stream.write_all(greeting.as_bytes()).await?;
    stream.flush().await?;
    let (mut from, mut to) = split(stream);
    copy(&mut from, &mut to).await?;
    to.shutdown().await
}
