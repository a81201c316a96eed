//! The rules one by one, and any order of events: nothing changes without news, and there is no news without a change.

use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*};

use super::*;

fn address(number: u8) -> IpAddr {
    [192, 0, 2, number].into()
}

fn resolvers(places: &[(u8, u8)]) -> BTreeMap<IpAddr, Resolver> {
    let one = |(number, node): &(u8, u8)| {
        let resolver = Resolver {
            address: address(*number),
            node: Some(format!("node-{node}")),
            zone: None,
        };
        (resolver.address, resolver)
    };
    places.iter().map(one).collect()
}

fn service(number: u8) -> ObjectId {
    ObjectId::new("shop", &format!("web-{number}"))
}

fn http(port: u16) -> PortAllotment {
    PortAllotment {
        name: "http".to_owned(),
        resolver_port: port,
    }
}

/// A list with these services, each with a port.
fn whole(generation: u64, services: &[(u8, u16)]) -> Answer {
    let services = services
        .iter()
        .map(|(number, port)| (service(*number), vec![http(*port)]));
    Answer {
        generation,
        is_ready: true,
        services: Some(services.collect()),
        unreachable: Unreachable::new(),
    }
}

fn unchanged(generation: u64) -> Answer {
    Answer {
        generation,
        is_ready: true,
        services: None,
        unreachable: Unreachable::new(),
    }
}

/// The same from one who cannot connect to a pod of these services, which is at this address.
fn cannot_reach(services: &[(u8, u8)], answer: Answer) -> Answer {
    let unreachable = services.iter().map(|(number, pod)| {
        let endpoint = SocketAddr::new(address(*pod), 80);
        (service(*number), endpoint)
    });
    Answer {
        unreachable: unreachable.collect(),
        ..answer
    }
}

fn not_ready(answer: Answer) -> Answer {
    Answer {
        is_ready: false,
        ..answer
    }
}

fn news(news: News) -> Outcome {
    Outcome {
        news: Some(news),
        turn: None,
    }
}

/// One resolver, which knows service 1 with port 10240.
fn one_that_knows() -> Known {
    let mut known = Known::new(3);
    known.present(resolvers(&[(1, 1)]));
    known.heard(address(1), Some(whole(7, &[(1, 10240)])));
    known
}

#[test]
fn nothing_is_synced_before_all_were_asked_once() {
    let mut known = Known::new(3);
    assert!(!known.is_synced());
    assert_eq!(known.present(resolvers(&[(1, 1), (2, 2)])), None);
    assert!(known.is_new(address(1)) && !known.is_synced());
    assert_eq!(known.heard(address(1), None), Outcome::default());
    assert!(!known.is_new(address(1)) && !known.is_synced());
    assert_eq!(known.heard(address(2), None), news(News::All));
    assert!(known.is_synced() && known.ready().next().is_none());
    // One that comes later changes nothing about that.
    assert_eq!(known.present(resolvers(&[(3, 3)])), None);
    assert!(known.is_synced() && known.is_new(address(3)));

    let mut empty = Known::new(3);
    assert_eq!(empty.present(resolvers(&[])), Some(News::All));
    assert!(empty.is_synced());
}

#[test]
fn a_resolver_knows_a_service_with_each_of_these_ports_or_not_yet() {
    let known = one_that_knows();
    let answer = |number, ports: &[PortAllotment]| {
        let answers = known.for_service(&service(number), ports);
        answers[0].1
    };
    assert_eq!(answer(1, &[http(10240)]), Knows::Yes);
    assert_eq!(answer(1, &[http(10241)]), Knows::NotYet);
    assert_eq!(answer(2, &[http(10240)]), Knows::NotYet);
    let other = PortAllotment {
        name: "admin".to_owned(),
        resolver_port: 10240,
    };
    assert_eq!(answer(1, std::slice::from_ref(&other)), Knows::NotYet);
    assert_eq!(answer(1, &[http(10240), other]), Knows::NotYet);
    // None is allotted: it is reached through the shared port.
    assert_eq!(answer(1, &[]), Knows::Yes);
    assert_eq!(answer(2, &[]), Knows::NotYet);
}

#[test]
fn three_misses_in_a_row_and_one_answer() {
    let mut known = one_that_knows();
    for _ in 0..2 {
        assert_eq!(known.heard(address(1), None), Outcome::default());
        assert_eq!(known.heard(address(1), None), Outcome::default());
        assert_eq!(
            known.heard(address(1), Some(unchanged(7))),
            Outcome::default()
        );
    }
    known.heard(address(1), None);
    known.heard(address(1), None);
    let lost = known.heard(address(1), None);
    assert_eq!((lost.news, lost.turn), (Some(News::All), Some(Turn::Lost)));
    assert!(known.for_service(&service(1), &[]).is_empty());
    assert_eq!(known.heard(address(1), None), Outcome::default());
    let back = known.heard(address(1), Some(unchanged(7)));
    assert_eq!((back.news, back.turn), (Some(News::All), Some(Turn::Back)));
    let answers = known.for_service(&service(1), &[http(10240)]);
    assert_eq!(answers[0].1, Knows::Yes, "its list is still known");
}

#[test]
fn one_where_nobody_listens_is_lost_at_once() {
    let mut known = one_that_knows();
    let lost = known.refused(address(1));
    assert_eq!((lost.news, lost.turn), (Some(News::All), Some(Turn::Lost)));
    assert_eq!(known.lost(), BTreeSet::from([address(1)]));
    assert_eq!(known.refused(address(1)), Outcome::default());
    let back = known.heard(address(1), Some(unchanged(7)));
    assert_eq!(back.turn, Some(Turn::Back));
    assert!(known.lost().is_empty());
    assert_eq!(
        known.refused(address(9)),
        Outcome::default(),
        "gone meanwhile"
    );
}

#[test]
fn one_that_never_answered_is_said_to_be_lost_once() {
    let mut known = Known::new(3);
    known.present(resolvers(&[(1, 1)]));
    let turns: Vec<_> = (0..5).map(|_| known.heard(address(1), None).turn).collect();
    assert_eq!(turns, [None, None, Some(Turn::Lost), None, None]);
}

#[test]
fn one_that_drains_or_is_not_synced_is_not_ready() {
    let mut known = one_that_knows();
    let outcome = known.heard(address(1), Some(not_ready(unchanged(7))));
    assert_eq!(outcome, news(News::All));
    assert_eq!(known.ready().count(), 0);
    assert_eq!(
        known.heard(address(1), Some(not_ready(whole(8, &[])))),
        Outcome::default()
    );
    assert_eq!(
        known.heard(address(1), Some(whole(9, &[]))),
        news(News::All)
    );
    assert_eq!(known.ready().count(), 1);
}

#[test]
fn a_change_of_a_list_names_its_services_and_no_others() {
    let mut known = one_that_knows();
    let list = [(1, 10240), (2, 10241)];
    let outcome = known.heard(address(1), Some(whole(8, &list)));
    assert_eq!(outcome, news(News::Services(vec![service(2)])));
    assert_eq!(
        known.heard(address(1), Some(whole(9, &list))),
        Outcome::default()
    );
    let list = [(2, 10242), (3, 10243)];
    let outcome = known.heard(address(1), Some(whole(10, &list)));
    let changed = vec![service(1), service(2), service(3)];
    assert_eq!(outcome, news(News::Services(changed)));
    assert_eq!(known.questions().next(), Some((address(1), Some(10))));
}

#[test]
fn who_is_unreachable_is_news_with_and_without_a_list_and_said_as_long_as_one_says_it() {
    let mut known = one_that_knows();
    known.present(resolvers(&[(1, 1), (2, 2)]));
    known.heard(address(2), Some(whole(1, &[])));
    let pod = |number| Some(SocketAddr::new(address(number), 80));
    let of_service = || news(News::Services(vec![service(1)]));
    assert_eq!(known.unreachable(&service(1)), None);

    let answer = cannot_reach(&[(1, 9)], unchanged(7));
    assert_eq!(known.heard(address(1), Some(answer.clone())), of_service());
    assert_eq!(known.unreachable(&service(1)), pod(9));
    assert_eq!(known.unreachable(&service(2)), None);
    // The same again is nothing new.
    assert_eq!(known.heard(address(1), Some(answer)), Outcome::default());

    // Of two the first, whoever says it.
    let answer = cannot_reach(&[(1, 8)], whole(2, &[]));
    assert_eq!(known.heard(address(2), Some(answer)), of_service());
    assert_eq!(known.unreachable(&service(1)), pod(8));
    assert_eq!(known.heard(address(2), Some(unchanged(2))), of_service());
    assert_eq!(known.unreachable(&service(1)), pod(9));

    // One that is lost says nothing any more.
    known.refused(address(1));
    assert_eq!(known.unreachable(&service(1)), None);
    assert_eq!(
        known.heard(address(1), Some(unchanged(7))).news,
        Some(News::All)
    );
    assert_eq!(known.unreachable(&service(1)), None);
}

#[test]
fn a_list_that_is_not_known_is_no_answer() {
    let mut known = one_that_knows();
    for _ in 0..2 {
        assert_eq!(
            known.heard(address(1), Some(unchanged(8))),
            Outcome::default()
        );
    }
    assert_eq!(
        known.heard(address(1), Some(unchanged(8))).turn,
        Some(Turn::Lost)
    );
}

#[test]
fn one_that_moved_or_went_is_news_and_one_that_came_is_when_it_answers() {
    let mut known = one_that_knows();
    assert_eq!(known.present(resolvers(&[(1, 1), (2, 1)])), None);
    assert_eq!(
        known.heard(address(2), Some(whole(1, &[]))),
        news(News::All)
    );
    assert_eq!(known.present(resolvers(&[(1, 2), (2, 1)])), Some(News::All));
    assert_eq!(known.present(resolvers(&[(1, 2), (2, 1)])), None);
    assert_eq!(known.present(resolvers(&[(2, 1)])), Some(News::All));
    // What it knew went with it: at the same address may be another now.
    assert_eq!(known.present(resolvers(&[(1, 2), (2, 1)])), None);
    assert_eq!(known.questions().next(), Some((address(1), None)));
    assert_eq!(
        known.heard(address(3), Some(whole(1, &[]))),
        Outcome::default()
    );
}

#[derive(Clone, Debug)]
enum Event {
    Present(Vec<(u8, u8)>),
    Heard(u8, Option<Answer>),
}

fn event() -> impl Strategy<Value = Event> {
    let places = vec((1..4_u8, 1..3_u8), 0..4);
    let list = vec((1..4_u8, 1..3_u16), 0..3);
    let unreachable = vec((1..4_u8, 8..10_u8), 0..2);
    let answer = (
        0..3_u64,
        any::<bool>(),
        proptest::option::weighted(0.7, list),
        unreachable,
    );
    let answer = answer.prop_map(|(generation, is_ready, list, unreachable)| {
        let answer = match list {
            Some(list) => whole(generation, &list),
            None => unchanged(generation),
        };
        let answer = cannot_reach(&unreachable, answer);
        if is_ready { answer } else { not_ready(answer) }
    });
    let answer = prop_oneof![3 => answer.prop_map(Some), 2 => Just(None)];
    prop_oneof![
        1 => places.prop_map(Event::Present),
        6 => (1..4_u8, answer).prop_map(|(number, answer)| Event::Heard(number, answer)),
    ]
}

/// What each resolver says of a service.
type Said = Vec<(Resolver, Knows, Option<SocketAddr>)>;

/// All that can be asked.
fn answers(known: &Known) -> BTreeMap<(u8, u16), Said> {
    let asked = (1..4).flat_map(|number| (0..3).map(move |port| (number, port)));
    asked
        .map(|(number, port)| {
            let ports = [http(port)];
            let ports = if port == 0 { &[] } else { &ports[..] };
            let there = known.for_service(&service(number), ports).into_iter();
            let reaches = known.usable().map(|state| &state.unreachable);
            let said = there.zip(reaches).map(|((resolver, knows), unreachable)| {
                let unreachable = unreachable.get(&service(number)).copied();
                (resolver, knows, unreachable)
            });
            ((number, port), said.collect())
        })
        .collect()
}

proptest! {
    #[test]
    fn what_changes_is_news_and_what_is_news_has_changed(events in vec(event(), 1..40)) {
        let mut known = Known::new(3);
        for event in events {
            let (before, was_synced) = (answers(&known), known.is_synced());
            let news = match event {
                Event::Present(places) => known.present(resolvers(&places)),
                Event::Heard(number, answer) => known.heard(address(number), answer).news,
            };
            let after = answers(&known);
            let changed: BTreeSet<ObjectId> = before
                .iter()
                .filter(|(asked, before)| after.get(asked) != Some(before))
                .map(|((number, _), _)| service(*number))
                .collect();
            match news {
                None => prop_assert!(changed.is_empty() && was_synced == known.is_synced()),
                Some(News::All) => {
                    prop_assert!(!changed.is_empty() || was_synced != known.is_synced());
                }
                Some(News::Services(told)) => {
                    prop_assert_eq!(told.into_iter().collect::<BTreeSet<_>>(), changed);
                    prop_assert_eq!(was_synced, known.is_synced());
                }
            }
        }
    }
}
