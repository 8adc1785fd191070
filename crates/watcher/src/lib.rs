//! I/O in: `follow` one kind, `look` again live, and the in-memory reflector; verdicts are assessed at the door.

pub mod wire;
