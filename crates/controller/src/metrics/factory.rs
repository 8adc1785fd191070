//! Creates and registers metrics, and adds and removes their series.

use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::{
    Counter, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, Result,
};

/// Factory for all metrics of a registry; all names begin with `rollcall_`.
pub(super) struct MetricFactory<'a>(pub(super) &'a Registry);

fn metric_opts(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace("rollcall")
}

fn histogram_opts(name: &str, help: &str, bounds: &[f64]) -> HistogramOpts {
    HistogramOpts::new(name, help).namespace("rollcall").buckets(bounds.to_vec())
}

impl MetricFactory<'_> {
    fn register_metric<T: Collector + Clone + 'static>(&self, metric: T) -> Result<T> {
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    pub(super) fn counter_vec(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec> {
        self.register_metric(IntCounterVec::new(metric_opts(name, help), labels)?)
    }

    pub(super) fn gauge_vec(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec> {
        self.register_metric(IntGaugeVec::new(metric_opts(name, help), labels)?)
    }

    /// Gauges for timestamps, in seconds since the Unix epoch.
    pub(super) fn float_gauge_vec(&self, name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec> {
        self.register_metric(GaugeVec::new(metric_opts(name, help), labels)?)
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> Result<IntCounter> {
        self.register_metric(IntCounter::with_opts(metric_opts(name, help))?)
    }

    /// Counter of a duration, in seconds.
    pub(super) fn float_counter(&self, name: &str, help: &str) -> Result<Counter> {
        self.register_metric(Counter::with_opts(metric_opts(name, help))?)
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> Result<IntGauge> {
        self.register_metric(IntGauge::with_opts(metric_opts(name, help))?)
    }

    /// Gauge for a timestamp since the Unix epoch, or for a duration: in seconds.
    pub(super) fn float_gauge(&self, name: &str, help: &str) -> Result<Gauge> {
        self.register_metric(Gauge::with_opts(metric_opts(name, help))?)
    }

    pub(super) fn histogram(&self, name: &str, help: &str, bounds: &[f64]) -> Result<Histogram> {
        self.register_metric(Histogram::with_opts(histogram_opts(name, help, bounds))?)
    }

    pub(super) fn histogram_vec(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        bounds: &[f64],
    ) -> Result<HistogramVec> {
        self.register_metric(HistogramVec::new(histogram_opts(name, help, bounds), labels)?)
    }
}

/// Series of one metric of any type.
pub(super) trait MetricSeries {
    /// Adds the series, at 0 if it did not exist.
    fn show_series(&self, labels: &[&str]);
    /// Removes the series.
    fn hide_series(&self, labels: &[&str]);
}

impl<T: MetricVecBuilder> MetricSeries for MetricVec<T> {
    fn show_series(&self, labels: &[&str]) {
        self.with_label_values(labels);
    }

    fn hide_series(&self, labels: &[&str]) {
        // A series that never existed needs no removal.
        _ = self.remove_label_values(labels);
    }
}
