// The same controller by somebody who has read all about its cache: types without what is not read, a transform that drops
// the rest, no copies out of the cache, only the events that can change an answer, parallel reconciliations, and a patch
// only where the condition changes.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"rollcall.dev/bench/controller-runtime/slim"
)

const ownerIndex = ".metadata.controller"

type widgetReconciler struct{ client.Client }

// Reconcile tells a parent whether all of its children are ready, if it does not say so already.
func (r *widgetReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var cached slim.Widget
	if err := r.Get(ctx, request.NamespacedName, &cached); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var parts slim.PartList
	owned := client.MatchingFields{ownerIndex: cached.Name}
	if err := r.List(ctx, &parts, client.InNamespace(cached.Namespace), owned); err != nil {
		return ctrl.Result{}, err
	}
	ready := 0
	for i := range parts.Items {
		if isReady(&parts.Items[i]) {
			ready++
		}
	}
	condition := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "PartsNotReady",
		Message:            fmt.Sprintf("%d of %d parts are ready", ready, len(parts.Items)),
		ObservedGeneration: cached.Generation,
	}
	if ready == len(parts.Items) && ready > 0 {
		condition.Status, condition.Reason = metav1.ConditionTrue, "PartsReady"
	}
	widget := cached.DeepCopy()
	if !meta.SetStatusCondition(&widget.Status.Conditions, condition) {
		return ctrl.Result{}, nil
	}
	err := r.Status().Patch(ctx, widget, client.MergeFrom(&cached))
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func isReady(object client.Object) bool {
	part, ok := object.(*slim.Part)
	return ok && meta.IsStatusConditionTrue(part.Status.Conditions, "Ready")
}

// readinessChanged lets only those updates of a child through that can change its parent's answer.
var readinessChanged = predicate.Funcs{
	UpdateFunc: func(update event.UpdateEvent) bool {
		return isReady(update.ObjectOld) != isReady(update.ObjectNew)
	},
}

func ownerName(object client.Object) []string {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != "Widget" {
		return nil
	}
	return []string{owner.Name}
}

// strip drops the metadata that is never read, and the conditions of children but Ready.
func strip(in any) (any, error) {
	if object, ok := in.(client.Object); ok {
		object.SetManagedFields(nil)
		object.SetAnnotations(nil)
		object.SetLabels(nil)
	}
	if part, ok := in.(*slim.Part); ok {
		var kept []metav1.Condition
		if ready := meta.FindStatusCondition(part.Status.Conditions, "Ready"); ready != nil {
			kept = []metav1.Condition{{Type: ready.Type, Status: ready.Status}}
		}
		part.Status.Conditions = kept
	}
	return in, nil
}

func run() error {
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := slim.AddToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	noCopy := true
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultTransform: strip, DefaultUnsafeDisableDeepCopy: &noCopy},
	})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	if err := manager.GetFieldIndexer().IndexField(ctx, &slim.Part{}, ownerIndex, ownerName); err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		// Its own writes come back through here: an answer that was compared with an older one is looked at again.
		For(&slim.Widget{}).
		Owns(&slim.Part{}, builder.WithPredicates(readinessChanged)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		Complete(&widgetReconciler{manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
