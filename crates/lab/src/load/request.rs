//! What is sent, and whether what came back is its answer.
//!
//! A [`Template`] makes a [`Request`] for each number; [`Request::judge`] turns what was [`Received`] into an
//! [`Outcome`]. Both are functions of values; [`super::http1`] and [`super::http2`] do the talking.

use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Uri, header, uri::Authority};
use sha2::{Digest, Sha256};

use super::outcome::Outcome;
use crate::image::hexadecimal;

/// The header that carries a request's id; an answer that carries it must carry the same.
pub const REQUEST_ID: &str = "x-weir-request-id";
/// The header or trailer in which an answer says its body's SHA-256, in hexadecimal.
pub const SHA256: &str = "x-weir-sha256";
/// The header in which an answer says whether the request came through a proxy: its `Via`, or `-` for none.
pub const VIA: &str = "x-weir-via";

/// What a right answer is, beside a status of 2xx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Any body.
    Any,
    /// The body of the request, by its SHA-256.
    Mirror,
    /// A body whose SHA-256 is what the answer's header [`SHA256`] says.
    Declared,
}

/// What all requests of a run have in common.
pub(super) struct Template {
    /// Tells our requests from those of other runs.
    run: u64,
    pub(super) uri: Uri,
    pub(super) authority: String,
    pub(super) path: String,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    body_bytes: usize,
    check: Check,
}

/// One request.
pub(super) struct Request {
    pub(super) id: String,
    pub(super) body: Bytes,
    check: Check,
    sha256: Option<[u8; 32]>,
}

/// A whole answer.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) status: u16,
    pub(super) request_id: Option<Vec<u8>>,
    pub(super) declared: Option<Vec<u8>>,
    /// The server says that no proxy was in between.
    pub(super) is_direct: bool,
    pub(super) bytes: u64,
    pub(super) sha256: Option<[u8; 32]>,
}

/// Takes in a body: its length, and its hash if anyone will ask for it.
pub(super) struct BodySink {
    bytes: u64,
    hash: Option<Sha256>,
}

impl Template {
    pub(super) fn new(
        uri: &Uri,
        mut headers: Vec<(HeaderName, HeaderValue)>,
        body_bytes: usize,
        check: Check,
    ) -> Self {
        // Who asks for another host by name means it, in whatever protocol.
        let asked = headers.iter().find(|(name, _)| *name == header::HOST);
        let asked = asked.and_then(|(_, value)| value.to_str().ok()?.parse::<Authority>().ok());
        let authority = asked.or_else(|| uri.authority().cloned());
        headers.retain(|(name, _)| *name != header::HOST);
        let mut parts = uri.clone().into_parts();
        parts.authority.clone_from(&authority);
        let uri = Uri::from_parts(parts).unwrap_or_else(|_| uri.clone());
        let path = uri.path_and_query().map(ToString::to_string);
        Self {
            run: RandomState::new().hash_one(std::process::id()),
            authority: authority.map(|it| it.to_string()).unwrap_or_default(),
            uri,
            path: path.unwrap_or_else(|| "/".to_owned()),
            headers,
            body_bytes,
            check,
        }
    }

    pub(super) fn method(&self) -> &'static str {
        if self.body_bytes > 0 { "POST" } else { "GET" }
    }

    pub(super) fn request(&self, index: u64) -> Request {
        let body = body(self.run ^ index.rotate_left(32), self.body_bytes);
        Request {
            id: format!("{:016x}-{index}", self.run),
            sha256: (self.check == Check::Mirror).then(|| Sha256::digest(&body).into()),
            body: body.into(),
            check: self.check,
        }
    }
}

impl Request {
    pub(super) fn sink(&self) -> BodySink {
        BodySink {
            bytes: 0,
            hash: (self.check != Check::Any).then(Sha256::new),
        }
    }

    pub(super) fn judge(&self, received: &Received) -> Outcome {
        if !(200..300).contains(&received.status) {
            return Outcome::Status(received.status);
        }
        let is_for_another = received
            .request_id
            .as_ref()
            .is_some_and(|id| *id != self.id.as_bytes());
        let is_right = match self.check {
            Check::Any => true,
            Check::Mirror => received.sha256 == self.sha256,
            Check::Declared => match (&received.sha256, &received.declared) {
                (Some(hash), Some(declared)) => hexadecimal(hash).as_bytes() == *declared,
                _ => false,
            },
        };
        if is_right && !is_for_another {
            Outcome::Ok
        } else {
            Outcome::WrongBody
        }
    }
}

impl BodySink {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        }
    }

    pub(super) fn finish(self, received: &mut Received) {
        received.bytes = self.bytes;
        received.sha256 = self.hash.map(|hash| hash.finalize().into());
    }
}

/// Bytes that no other request of the run has: those of a small generator (splitmix64), started with `seed`.
fn body(mut seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length.next_multiple_of(8));
    while bytes.len() < length {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = seed;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(body_bytes: usize, check: Check) -> Template {
        let uri = Uri::from_static("http://h:1/p?q");
        Template::new(&uri, Vec::new(), body_bytes, check)
    }

    fn answer(request: &Request, body: &[u8]) -> Received {
        let mut sink = request.sink();
        sink.take(body);
        let mut received = Received {
            status: 200,
            ..Received::default()
        };
        sink.finish(&mut received);
        received
    }

    #[test]
    fn every_request_has_an_id_and_a_body_of_its_own() {
        let template = template(100, Check::Mirror);
        let (first, second) = (template.request(1), template.request(2));
        assert_ne!(first.id, second.id);
        assert_ne!(first.body, second.body);
        assert_eq!(first.body.len(), 100);
        assert_eq!(first.body, template.request(1).body);
        assert_eq!((&*template.authority, &*template.path), ("h:1", "/p?q"));
    }

    #[test]
    fn a_host_that_was_asked_for_replaces_that_of_the_url() {
        let uri = Uri::from_static("http://10.0.0.1:80/p");
        let host = HeaderValue::from_static("shop.example");
        let template = Template::new(&uri, vec![(header::HOST, host)], 0, Check::Any);
        assert_eq!(template.authority, "shop.example");
        assert_eq!(template.uri, "http://shop.example/p");
        assert!(template.headers.is_empty());
    }

    #[test]
    fn only_its_own_body_is_a_mirrored_requests_answer() {
        let template = template(100, Check::Mirror);
        let (request, another) = (template.request(1), template.request(2));
        let judge = |body: &[u8]| request.judge(&answer(&request, body));
        assert_eq!(judge(&request.body), Outcome::Ok);
        assert_eq!(judge(&another.body), Outcome::WrongBody);
        assert_eq!(judge(&request.body[..99]), Outcome::WrongBody);
        assert_eq!(judge(b""), Outcome::WrongBody);
    }

    #[test]
    fn the_answer_to_another_request_is_wrong_whatever_its_body() {
        let request = template(0, Check::Any).request(7);
        let mut received = answer(&request, b"anything");
        assert_eq!(request.judge(&received), Outcome::Ok);
        received.request_id = Some(request.id.clone().into_bytes());
        assert_eq!(request.judge(&received), Outcome::Ok);
        received.request_id = Some(b"another".to_vec());
        assert_eq!(request.judge(&received), Outcome::WrongBody);
    }

    #[test]
    fn a_declared_hash_must_be_there_and_be_right() {
        let request = template(0, Check::Declared).request(7);
        let mut received = answer(&request, b"");
        assert_eq!(request.judge(&received), Outcome::WrongBody);
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        received.declared = Some(empty.into());
        assert_eq!(request.judge(&received), Outcome::Ok);
        received.declared = Some(empty.replace('e', "f").into());
        assert_eq!(request.judge(&received), Outcome::WrongBody);
    }

    #[test]
    fn a_status_is_told_before_anything_else() {
        let request = template(9, Check::Mirror).request(7);
        let mut received = answer(&request, b"");
        received.status = 503;
        assert_eq!(request.judge(&received), Outcome::Status(503));
    }
}
