//! Tests of eviction: which connection, in which order, and how it ends.

use std::net::Ipv4Addr;

use super::*;
use crate::model::bounds::EVICT_WRITING_AFTER;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn add(table: &Arc<ConnectionTable>, stage: Stage) -> ConnectionSlot {
    let slot = table.add(PEER).unwrap();
    if stage == Stage::Running {
        slot.connection.begin_serving().set_running();
    } else {
        slot.connection.set_stage(stage);
    }
    slot
}

/// For each slot: whether its connection was cut, and whether its request is answered as busy.
fn ended(slots: &[ConnectionSlot]) -> (Vec<bool>, Vec<bool>) {
    let of = |is: fn(&Connection) -> bool| slots.iter().map(|slot| is(&slot.connection)).collect();
    (of(|connection| connection.cut.is_cancelled()), of(Connection::is_evicted))
}

#[tokio::test(start_paused = true)]
async fn the_least_active_connection_is_evicted() {
    let evict_after = Duration::from_millis(600);
    let table = ConnectionTable::new(6, evict_after, <_>::default());
    let all = [Stage::Running, Stage::Sending, Stage::Streaming, Stage::Served, Stage::Idle, Stage::Silent];
    let first = all.map(|stage| add(&table, stage));
    assert!(table.add(PEER).is_none(), "a new connection is not evicted");
    tokio::time::sleep(evict_after).await;
    let mut new_slots = Vec::new();
    for (at, stage) in all.iter().enumerate().rev() {
        new_slots.push(add(&table, Stage::Running));
        let (cut, is_busy) = ended(&first);
        assert!(cut[at] && !cut[..at].contains(&true), "{stage:?}: {cut:?}");
        assert_eq!(is_busy[at], stage.has_open_request(), "{stage:?}");
        // As if the client had read the busy error.
        table.lock().evicted.clear();
    }
    assert!(table.add(PEER).is_none(), "all connections are new");
    drop(new_slots.pop());
    assert!(table.add(PEER).is_some());
}

#[tokio::test(start_paused = true)]
async fn of_equal_connections_one_of_the_address_with_most_is_evicted() {
    let table = ConnectionTable::new(4, EVICT_WRITING_AFTER.get(), <_>::default());
    let other = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let lone = table.add(PEER).unwrap();
    let crowd: Vec<_> = (0..3).map(|_| table.add(other).unwrap()).collect();
    for slot in crowd.iter().chain([&lone]) {
        slot.connection.begin_serving();
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(EVICT_WAITING_AFTER.get()).await;
    let _new = table.add(PEER).unwrap();
    assert_eq!(ended(&crowd).0, [true, false, false], "the one that has waited longest");
    assert!(!lone.connection.is_evicted());
}

#[tokio::test(start_paused = true)]
async fn waiting_connections_take_at_most_half_of_a_nearly_full_table() {
    let table = ConnectionTable::new(16, EVICT_WRITING_AFTER.get(), <_>::default());
    let waiting: Vec<_> = (0..11).map(|_| add(&table, Stage::Served)).collect();
    tokio::time::sleep(EVICT_WAITING_AFTER.get()).await;
    let gone = |slots: &[ConnectionSlot]| ended(slots).1.into_iter().filter(|is| *is).count();
    let _one = add(&table, Stage::Running);
    assert_eq!(gone(&waiting), 0, "there is room");
    let _more: Vec<_> = (0..3).map(|_| add(&table, Stage::Running)).collect();
    assert_eq!(gone(&waiting), 3);
}

#[tokio::test(start_paused = true)]
async fn if_all_are_busy_the_oldest_connection_is_closed_after_its_answer() {
    let table = ConnectionTable::new(2, EVICT_WRITING_AFTER.get(), <_>::default());
    let first = add(&table, Stage::Idle);
    tokio::time::advance(Duration::from_millis(1)).await;
    let busy = [first, add(&table, Stage::Idle)];
    tokio::time::sleep(EVICT_NEW_AFTER.get()).await;
    busy.iter().for_each(|slot| slot.connection.set_stage(Stage::Idle));
    assert!(table.add(PEER).is_none());
    assert_eq!(busy.each_ref().map(|slot| slot.connection.closes_after_answer()), [true, false]);
    assert_eq!(ended(&busy), (vec![false, false], vec![false, false]), "no connection is cut");
    let [first, _second] = busy;
    drop(first);
    assert!(table.add(PEER).is_some());
}

#[tokio::test(start_paused = true)]
async fn at_most_a_quarter_of_the_table_is_being_evicted_at_once() {
    let table = ConnectionTable::new(8, EVICT_WRITING_AFTER.get(), <_>::default());
    let mut waiting: Vec<_> = (0..8).map(|_| add(&table, Stage::Served)).collect();
    tokio::time::sleep(EVICT_WAITING_AFTER.get()).await;
    let _new = [add(&table, Stage::Running), add(&table, Stage::Running)];
    assert!(table.add(PEER).is_none(), "two are still reading their busy errors");
    waiting.retain(|slot| !slot.connection.is_evicted());
    assert!(table.add(PEER).is_some(), "both are closed");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_read_in_time_ends_the_connection() {
    let slot = ConnectionTable::new(1, EVICT_WRITING_AFTER.get(), <_>::default()).add(PEER).unwrap();
    let connection = &slot.connection;
    let soon = || Some(Instant::now() + Duration::from_millis(100));
    let answers = async {
        connection.set_deadline(soon());
        tokio::time::sleep(Duration::from_millis(50)).await;
        connection.set_deadline(None);
        tokio::time::sleep(Duration::from_millis(300)).await;
        connection.set_deadline(soon());
        std::future::pending::<()>().await;
    };
    let began = Instant::now();
    // Both run in one task, as for a connection.
    tokio::select! { biased; () = answers => {}, () = connection.wait_for_close() => {} }
    let ended_after = began.elapsed().as_millis();
    assert!(
        (450..455).contains(&ended_after),
        "{ended_after} ms: the first answer was read in time, the second was not"
    );
}
