//! A GET, and whether its answer is a success: a status from 200 to 399, where a redirect to the same pod is followed.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Request, Response, StatusCode, Uri,
    header::{ACCEPT, CONNECTION, HOST, LOCATION, USER_AGENT},
    uri::PathAndQuery,
};
use http_body_util::Empty;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::NotWell;

/// As the kubelet.
const REDIRECTS: usize = 10;

/// What an answer means.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Well,
    NotWell,
    /// Elsewhere on the same pod it is said.
    Ask(PathAndQuery),
}

pub(super) async fn get(
    first: TcpStream,
    address: SocketAddr,
    tls: Option<&TlsConnector>,
    path: &PathAndQuery,
    headers: &[(HeaderName, HeaderValue)],
) -> Result<(), NotWell> {
    let mut stream = Some(first);
    let mut path = path.clone();
    for _ in 0..=REDIRECTS {
        let stream = match stream.take() {
            Some(stream) => stream,
            None => TcpStream::connect(address).await?,
        };
        let request = request(address, &path, headers)?;
        let answer = match tls {
            None => exchange(stream, request).await?,
            Some(tls) => {
                let name = ServerName::IpAddress(address.ip().into());
                exchange(tls.connect(name, stream).await?, request).await?
            }
        };
        let location = answer.headers().get(LOCATION);
        match judge(answer.status(), location, address.ip()) {
            Verdict::Well => return Ok(()),
            Verdict::NotWell => return Err(NotWell),
            Verdict::Ask(elsewhere) => path = elsewhere,
        }
    }
    Err(NotWell)
}

fn request(
    address: SocketAddr,
    path: &PathAndQuery,
    headers: &[(HeaderName, HeaderValue)],
) -> Result<Request<Empty<Bytes>>, NotWell> {
    let mut request = Request::get(path.as_str()).body(Empty::new())?;
    let all = request.headers_mut();
    for (name, value) in headers {
        all.append(name.clone(), value.clone());
    }
    let host = HeaderValue::try_from(address.to_string()).map_err(|_| NotWell)?;
    all.entry(HOST).or_insert(host);
    let agent = HeaderValue::from_static(super::USER_AGENT);
    all.entry(USER_AGENT).or_insert(agent);
    let anything = HeaderValue::from_static("*/*");
    all.entry(ACCEPT).or_insert(anything);
    all.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

/// The head of the answer. The rest is nobody's business: the connection ends here.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: Request<Empty<Bytes>>,
) -> Result<Response<Incoming>, NotWell> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut answer = std::pin::pin!(sender.send_request(request));
    tokio::select! {
        answer = &mut answer => Ok(answer?),
        // It may have ended with the answer.
        _ = connection => Ok(answer.await?),
    }
}

/// The kubelet follows a redirect to the same host, and takes one to another for a success.
fn judge(status: StatusCode, location: Option<&HeaderValue>, asked: IpAddr) -> Verdict {
    if !(200..400).contains(&status.as_u16()) {
        return Verdict::NotWell;
    }
    let follows = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = location.filter(|_| follows) else {
        return Verdict::Well;
    };
    let text = location.to_str().unwrap_or_default();
    if text.starts_with('/') && !text.starts_with("//") {
        return PathAndQuery::try_from(text).map_or(Verdict::NotWell, Verdict::Ask);
    }
    let target: Option<Uri> = text.parse().ok();
    let target = target.filter(|target| target.scheme().is_some());
    let Some(host) = target.as_ref().and_then(Uri::host) else {
        return Verdict::NotWell;
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    // Another port of the same pod, perhaps: the kubelet will find out.
    if host.parse() == Ok(asked) {
        Verdict::NotWell
    } else {
        Verdict::Well
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_success_is_what_the_kubelet_takes_for_one() {
        use Verdict::{Ask, NotWell, Well};
        let path = |path| Ask(PathAndQuery::from_static(path));
        for (status, location, expected) in [
            (200, None, Well),
            (204, None, Well),
            (399, None, Well),
            (199, None, NotWell),
            (400, None, NotWell),
            (503, Some("/"), NotWell),
            (304, Some("/"), Well),
            (302, None, Well),
            (302, Some("/login?a=b"), path("/login?a=b")),
            (301, Some("http://192.0.2.1:81/"), NotWell),
            (308, Some("https://shop.example/"), Well),
            (307, Some("a b"), NotWell),
            (307, Some("login"), NotWell),
            (307, Some("//shop.example/"), NotWell),
            (307, Some(""), NotWell),
        ] {
            let location = location.map(HeaderValue::from_static);
            let status = StatusCode::from_u16(status).unwrap();
            let asked = [192, 0, 2, 1].into();
            let verdict = judge(status, location.as_ref(), asked);
            assert_eq!(verdict, expected, "{status} {location:?}");
        }
    }
}
