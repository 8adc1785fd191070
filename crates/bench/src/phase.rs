//! What a part of a run took.

use std::thread;
use std::time::Duration;

use crate::service::MeasuredService;

/// What a phase took.
pub(crate) struct Phase {
    pub(crate) peak: f64,
    /// Memory a while after its end.
    pub(crate) rest: f64,
    pub(crate) processor_seconds: f64,
}

impl Phase {
    /// Measures a phase that began at this processor time, when the service has come to rest.
    pub(crate) fn end(service: &MeasuredService, pause: Duration, begun: f64) -> anyhow::Result<Phase> {
        service.wait_until_at_rest()?;
        let (peak, processor_seconds) = (service.peak()?, service.processor_seconds()? - begun);
        thread::sleep(pause);
        Ok(Phase { peak, rest: service.memory()?, processor_seconds })
    }

    /// Prints it in a line.
    pub(crate) fn print(&self, name: &str) {
        let Phase { peak, rest, processor_seconds } = self;
        println!("{name:10} peak {peak:6.1}  rest {rest:6.1}  processor {processor_seconds:.2} s");
    }
}
