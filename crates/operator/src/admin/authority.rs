//! Who may send wake signals and read secured metrics: asked of the API server by token, and remembered for a while.
//!
//! A token itself is kept nowhere, only its SHA-256 ([`memory`]). While the API server cannot be asked, what it said in
//! the last minutes holds: resolvers must be able to wake just then.

mod memory;

use std::{sync::Mutex, time::Duration};

use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use memory::{Digest, Memory, Question, Said};
use thiserror::Error;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};
use weir_api::hold::names::http::METRICS_PATH;
use weir_role::metrics::lock;

/// The API server has so long to answer, the wait for a turn included.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Questions to the API server at a time: who sends many bad tokens must not make us flood it.
const AT_A_TIME: usize = 16;

/// Decides by tokens.
pub struct Authority {
    client: Client,
    /// The only user that may wake; none: anybody may.
    waker: Option<String>,
    memory: Mutex<Memory>,
    turns: Semaphore,
    began: Instant,
}

/// Why somebody may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// They do not say who they are.
    #[error("no token; send `Authorization: Bearer …` with the token of a ServiceAccount")]
    NoToken,
    /// The cluster does not know them.
    #[error("the cluster does not know this token; it may have run out")]
    BadToken,
    /// They are somebody else.
    #[error(
        "this user may not do that; see --resolver-namespace and --resolver-service-account for wakes, and a ClusterRole with `get` on /metrics for metrics"
    )]
    Forbidden,
    /// It cannot be known now.
    #[error("the API server cannot be asked whose token this is; try again")]
    Unavailable,
}

impl Authority {
    /// Only this ServiceAccount may wake. The operator's own must be allowed to create TokenReviews and, for secured
    /// metrics, SubjectAccessReviews.
    pub fn new(client: Client, namespace: &str, service_account: &str) -> Self {
        Self {
            client,
            waker: Some(format!(
                "system:serviceaccount:{namespace}:{service_account}"
            )),
            memory: Mutex::default(),
            turns: Semaphore::new(AT_A_TIME),
            began: Instant::now(),
        }
    }

    /// Anybody may wake. Secured metrics still need a token.
    #[must_use]
    pub fn without_tokens_for_wakes(mut self) -> Self {
        self.waker = None;
        self
    }

    /// The same with another memory: answers hold for so long, and so long while the API server cannot be asked.
    #[must_use]
    pub fn remembering(mut self, fresh: Duration, grace: Duration) -> Self {
        self.memory = Mutex::new(Memory::new(fresh, grace));
        self
    }

    /// May who sent this wake a service?
    pub async fn may_wake(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match &self.waker {
            Some(_) => self.ask(headers, Question::Wake).await,
            None => Ok(()),
        }
    }

    /// May who sent this read metrics?
    pub async fn may_read_metrics(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        self.ask(headers, Question::Metrics).await
    }

    async fn ask(&self, headers: &HeaderMap, question: Question) -> Result<(), Refusal> {
        let token = bearer(headers).ok_or(Refusal::NoToken)?;
        let digest = Digest::of(token);
        let known = lock(&self.memory).fresh(digest, question, self.began.elapsed());
        if let Some(said) = known {
            return said.into_result();
        }
        let review = async {
            // The semaphore is never closed.
            let _turn = self.turns.acquire().await.ok();
            self.review(token, question).await
        };
        let trouble = match timeout(TIMEOUT, review).await {
            Ok(Ok(said)) => {
                lock(&self.memory).keep(digest, question, said, self.began.elapsed());
                return said.into_result();
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        let now = self.began.elapsed();
        let (was_allowed, is_news) = {
            let mut memory = lock(&self.memory);
            (
                memory.was_allowed(digest, question, now),
                memory.trouble_is_news(now),
            )
        };
        if is_news {
            tracing::warn!(
                error = trouble,
                "a token cannot be checked; see whether this ServiceAccount may create tokenreviews of the group \"authentication.k8s.io\" and, for secured metrics, subjectaccessreviews of \"authorization.k8s.io\""
            );
        }
        if was_allowed {
            Ok(())
        } else {
            Err(Refusal::Unavailable)
        }
    }

    async fn review(&self, token: &str, question: Question) -> kube::Result<Said> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                audiences: None,
            },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        let status = answer.status.unwrap_or_default();
        let user = match status.user {
            Some(user) if status.authenticated == Some(true) => user,
            _ => return Ok(Said::Unknown),
        };
        let may = match question {
            Question::Wake => user.username.is_some() && user.username == self.waker,
            Question::Metrics => self.may_get_metrics(user).await?,
        };
        Ok(if may { Said::Allowed } else { Said::Forbidden })
    }

    async fn may_get_metrics(&self, user: UserInfo) -> kube::Result<bool> {
        let UserInfo {
            extra,
            groups,
            uid,
            username,
        } = user;
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                extra,
                groups,
                uid,
                user: username,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(METRICS_PATH.to_owned()),
                    verb: Some("get".to_owned()),
                }),
                resource_attributes: None,
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

impl Refusal {
    /// How it is answered.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::NoToken | Self::BadToken => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// A label for metrics, out of a fixed set.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoToken => "no_token",
            Self::BadToken => "bad_token",
            Self::Forbidden => "forbidden",
            Self::Unavailable => "unavailable",
        }
    }
}

impl Said {
    fn into_result(self) -> Result<(), Refusal> {
        match self {
            Self::Allowed => Ok(()),
            Self::Forbidden => Err(Refusal::Forbidden),
            Self::Unknown => Err(Refusal::BadToken),
        }
    }
}

/// The token of a header such as `Bearer abc`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_token_is_read_from_its_header() {
        let read = |value: &'static str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))]);
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(read("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(read("bearer  abc ").as_deref(), Some("abc"));
        for none in ["", "Bearer", "Bearer ", "Basic abc", "abc"] {
            assert_eq!(read(none), None, "{none}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
