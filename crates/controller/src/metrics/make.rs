//! How a metric is made and registered, and how its series come and go.

use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::{
    Counter, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, Result,
};

/// One shop for all metrics of a registry; every name begins with `rollcall_`.
pub(super) struct Make<'a>(pub(super) &'a Registry);

fn opts(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace("rollcall")
}

fn spread(name: &str, help: &str, bounds: &[f64]) -> HistogramOpts {
    HistogramOpts::new(name, help).namespace("rollcall").buckets(bounds.to_vec())
}

impl Make<'_> {
    fn kept<T: Collector + Clone + 'static>(&self, metric: T) -> Result<T> {
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    pub(super) fn counters(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec> {
        self.kept(IntCounterVec::new(opts(name, help), labels)?)
    }

    pub(super) fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec> {
        self.kept(IntGaugeVec::new(opts(name, help), labels)?)
    }

    /// Moments, in seconds since the Unix epoch.
    pub(super) fn times(&self, name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec> {
        self.kept(GaugeVec::new(opts(name, help), labels)?)
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> Result<IntCounter> {
        self.kept(IntCounter::with_opts(opts(name, help))?)
    }

    /// A time that adds up, in seconds.
    pub(super) fn seconds(&self, name: &str, help: &str) -> Result<Counter> {
        self.kept(Counter::with_opts(opts(name, help))?)
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> Result<IntGauge> {
        self.kept(IntGauge::with_opts(opts(name, help))?)
    }

    /// A moment, since the Unix epoch, or a span: in seconds.
    pub(super) fn time(&self, name: &str, help: &str) -> Result<Gauge> {
        self.kept(Gauge::with_opts(opts(name, help))?)
    }

    pub(super) fn histogram(&self, name: &str, help: &str, bounds: &[f64]) -> Result<Histogram> {
        self.kept(Histogram::with_opts(spread(name, help, bounds))?)
    }

    pub(super) fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        bounds: &[f64],
    ) -> Result<HistogramVec> {
        self.kept(HistogramVec::new(spread(name, help, bounds), labels)?)
    }
}

/// Series of one metric, whatever its type.
pub(super) trait Series {
    /// It exists, at 0 where it did not.
    fn show(&self, labels: &[&str]);
    /// It exists no more.
    fn hide(&self, labels: &[&str]);
}

impl<T: MetricVecBuilder> Series for MetricVec<T> {
    fn show(&self, labels: &[&str]) {
        self.with_label_values(labels);
    }

    fn hide(&self, labels: &[&str]) {
        // One that never existed is hidden already.
        _ = self.remove_label_values(labels);
    }
}
