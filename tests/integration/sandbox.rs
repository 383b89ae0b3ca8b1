//! The sandbox: no call can see another call or the host.

mod hand_written;
mod isolation;
mod taken_over;
mod workers;
