//! The books, without anything to look at.

use super::*;

fn name(name: &str) -> MountName {
    MountName::new(name).unwrap()
}

fn watching() -> Arc<Watching> {
    Watching::new(config::Watch::default(), None)
}

fn enter(subscriber: &Subscriber, uri: &str) -> Result<bool, NotWatched> {
    subscriber.watching().books().enter(subscriber.id(), &uri.into(), &name("m"))
}

fn there(n: u8) -> Seen {
    Seen::There(blake3::Hash::from_bytes([n; 32]))
}

#[tokio::test]
async fn changes_are_told_once_and_to_those_who_watch() {
    let watching = watching();
    let [one, two] = [(); 2].map(|()| watching.subscriber(false).unwrap());
    assert_eq!(enter(&one, "m://a"), Ok(true));
    let uri: Arc<str> = "m://a".into();
    watching.books().saw_first(&uri, there(1));
    assert_eq!(enter(&two, "m://a"), Ok(false), "it was looked at already");
    assert!(!watching.books().saw(&uri, there(1)), "nothing changed");
    for n in 2..9 {
        assert!(watching.books().saw(&uri, there(n)));
    }
    assert_eq!(one.next().await, [Change::Updated(Arc::clone(&uri))]);
    assert_eq!(two.next().await, [Change::Updated(Arc::clone(&uri))]);
    two.unwatch(&uri);
    assert!(watching.books().saw(&uri, Seen::Gone));
    assert_eq!(one.next().await.len(), 1);
    assert!(tokio::time::timeout(Duration::from_millis(200), two.next()).await.is_err());
    drop((one, two));
    assert_eq!(watching.counts(), (0, 0));
    assert!(watching.books().groups.is_empty());
}

#[tokio::test]
async fn what_was_to_be_told_is_not_lost_when_nobody_waits_for_it() {
    let watching = watching();
    let one = watching.subscriber(true).unwrap();
    watching.books().list_changed();
    // Dropped while changes are gathered.
    assert!(tokio::time::timeout(GATHER / 2, one.next()).await.is_err());
    assert_eq!(one.next().await, [Change::List]);
    let began = Instant::now();
    watching.books().list_changed();
    assert_eq!(one.next().await, [Change::List]);
    assert!(began.elapsed() >= LISTS_APART);
}

#[test]
fn there_are_only_so_many() {
    let watching = watching();
    let all: Vec<Subscriber> = std::iter::from_fn(|| watching.subscriber(false).ok()).collect();
    assert_eq!(all.len(), SUBSCRIBERS);
    let watched = |subscriber: &Subscriber, of: usize| {
        let entered = (0..2 * URIS).map(|n| enter(subscriber, &format!("m://{of}/{n}")));
        entered.take_while(Result::is_ok).count()
    };
    assert_eq!(watched(&all[0], 0), URIS);
    let total: usize = all.iter().enumerate().map(|(of, one)| watched(one, of)).sum();
    assert_eq!(watching.counts().0, ALL_URIS);
    assert_eq!(total, ALL_URIS, "those that one watches already count as watched");
    drop(all);
    assert_eq!(watching.counts(), (0, 0));
}

#[test]
fn what_is_watched_goes_with_its_mount() {
    let watching = watching();
    let one = watching.subscriber(false).unwrap();
    enter(&one, "m://a").unwrap();
    watching.books().saw_first("m://a", there(1));
    watching.books().regroup(|_| Some(name("other")));
    {
        let books = watching.books();
        assert!(books.groups[&name("m")].uris.is_empty() && books.groups[&name("other")].uris.contains("m://a"));
    }
    assert!(one.mailbox.letters().updated.is_empty(), "the same resource elsewhere is looked at, not told");
    watching.books().regroup(|_| None);
    assert_eq!(one.mailbox.letters().updated.len(), 1, "it is gone");
    watching.books().regroup(|_| Some(name("m")));
    assert!(watching.books().groups[&name("m")].uris.contains("m://a"), "it is back, and looked at");
}
