//! The sandbox: no call can see another call or the host.

mod hand_written;
mod isolation;
mod launcher;
mod shared_worker;
mod taken_over;
mod workers;
