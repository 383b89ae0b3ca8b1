//! Who gives way, in which order, and how.

use std::net::Ipv4Addr;

use super::*;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn enter(house: &Arc<House>, stage: Stage) -> Entry {
    let entry = house.enter(PEER).unwrap();
    if stage == Stage::Running {
        entry.guest.is_served().begin();
    } else {
        entry.guest.is_at(stage);
    }
    entry
}

/// Which of these were ended, and which of those are told that belljar is busy.
fn ended(entries: &[Entry]) -> (Vec<bool>, Vec<bool>) {
    let of = |is: fn(&Guest) -> bool| entries.iter().map(|entry| is(&entry.guest)).collect();
    (of(|guest| guest.cut.is_cancelled()), of(Guest::gives_way))
}

#[tokio::test]
async fn who_does_least_gives_way() {
    let patience = Duration::from_millis(600);
    let house = House::new(6, patience);
    let all = [Stage::Running, Stage::Taking, Stage::Listening, Stage::Served, Stage::Idle, Stage::Silent];
    let first = all.map(|stage| enter(&house, stage));
    assert!(house.enter(PEER).is_none(), "who has only come is left alone");
    tokio::time::sleep(patience).await;
    let mut newcomers = Vec::new();
    for (at, stage) in all.iter().enumerate().rev() {
        newcomers.push(enter(&house, Stage::Running));
        let (cut, told) = ended(&first);
        assert!(cut[at] && !cut[..at].contains(&true), "{stage:?}: {cut:?}");
        assert_eq!(told[at], stage.is_answered(), "{stage:?}");
        // It has taken the word about it.
        house.lock().leaving.clear();
    }
    assert!(house.enter(PEER).is_none(), "nobody has been at it for long");
    drop(newcomers.pop());
    assert!(house.enter(PEER).is_some());
}

#[tokio::test]
async fn of_those_that_do_the_same_the_address_with_most_gives_way_first() {
    let house = House::new(4, PATIENCE);
    let other = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let lone = house.enter(PEER).unwrap();
    let crowd: Vec<_> = (0..3).map(|_| house.enter(other).unwrap()).collect();
    for entry in crowd.iter().chain([&lone]) {
        entry.guest.is_served();
    }
    tokio::time::sleep(WAIT).await;
    let _new = house.enter(PEER).unwrap();
    assert_eq!(ended(&crowd).0, [true, false, false], "the one that waits for longest");
    assert!(!lone.guest.gives_way());
}

#[tokio::test]
async fn waiting_takes_half_of_the_places_once_it_is_tight() {
    let house = House::new(16, PATIENCE);
    let waiting: Vec<_> = (0..11).map(|_| enter(&house, Stage::Served)).collect();
    tokio::time::sleep(WAIT).await;
    let gone = |entries: &[Entry]| ended(entries).1.into_iter().filter(|is| *is).count();
    let _one = enter(&house, Stage::Running);
    assert_eq!(gone(&waiting), 0, "there is room");
    let _more: Vec<_> = (0..3).map(|_| enter(&house, Stage::Running)).collect();
    assert_eq!(gone(&waiting), 3);
}

#[tokio::test]
async fn where_all_are_busy_without_a_pause_the_longest_inside_is_closed_after_its_answer() {
    let house = House::new(2, PATIENCE);
    let busy = [enter(&house, Stage::Idle), enter(&house, Stage::Idle)];
    tokio::time::sleep(GRACE).await;
    busy.iter().for_each(|entry| entry.guest.is_at(Stage::Idle));
    assert!(house.enter(PEER).is_none());
    assert_eq!(busy.each_ref().map(|entry| entry.guest.is_last()), [true, false]);
    assert_eq!(ended(&busy), (vec![false, false], vec![false, false]), "nothing is cut off");
    let [first, _second] = busy;
    drop(first);
    assert!(house.enter(PEER).is_some());
}

#[tokio::test]
async fn so_many_are_told_at_once_that_they_gave_way() {
    let house = House::new(8, PATIENCE);
    let mut waiting: Vec<_> = (0..8).map(|_| enter(&house, Stage::Served)).collect();
    tokio::time::sleep(WAIT).await;
    let _new = [enter(&house, Stage::Running), enter(&house, Stage::Running)];
    assert!(house.enter(PEER).is_none(), "two are being told");
    waiting.retain(|entry| !entry.guest.gives_way());
    assert!(house.enter(PEER).is_some(), "they were");
}

#[tokio::test]
async fn what_is_not_taken_in_time_ends_the_connection() {
    let entry = House::new(1, PATIENCE).enter(PEER).unwrap();
    let guest = &entry.guest;
    let soon = || Some(Instant::now() + Duration::from_millis(100));
    let taken = async {
        guest.is_due(soon());
        tokio::time::sleep(Duration::from_millis(50)).await;
        guest.is_due(None);
        tokio::time::sleep(Duration::from_millis(300)).await;
        guest.is_due(soon());
        std::future::pending::<()>().await;
    };
    let began = Instant::now();
    // One task, as for a connection.
    tokio::select! { biased; () = taken => {}, () = guest.over() => {} }
    assert!(began.elapsed() >= Duration::from_millis(450), "the first was taken");
}
