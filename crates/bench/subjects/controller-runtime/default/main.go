// A controller as its users write it first: the manager's default cache, an index of the children by their owner, and a
// patch of the status at the end of each reconciliation.
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"rollcall.dev/bench/controller-runtime/api"
)

const ownerIndex = ".metadata.controller"

type widgetReconciler struct{ client.Client }

// Reconcile tells a parent whether all of its children are ready.
func (r *widgetReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var widget api.Widget
	if err := r.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var parts api.PartList
	owned := client.MatchingFields{ownerIndex: widget.Name}
	if err := r.List(ctx, &parts, client.InNamespace(widget.Namespace), owned); err != nil {
		return ctrl.Result{}, err
	}
	ready := 0
	for _, part := range parts.Items {
		if meta.IsStatusConditionTrue(part.Status.Conditions, "Ready") {
			ready++
		}
	}
	before := widget.DeepCopy()
	condition := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "PartsNotReady",
		Message:            fmt.Sprintf("%d of %d parts are ready", ready, len(parts.Items)),
		ObservedGeneration: widget.Generation,
	}
	if ready == len(parts.Items) && ready > 0 {
		condition.Status, condition.Reason = metav1.ConditionTrue, "PartsReady"
	}
	meta.SetStatusCondition(&widget.Status.Conditions, condition)
	err := r.Status().Patch(ctx, &widget, client.MergeFrom(before))
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func ownerName(object client.Object) []string {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != "Widget" {
		return nil
	}
	return []string{owner.Name}
}

func run() error {
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	if err := manager.GetFieldIndexer().IndexField(ctx, &api.Part{}, ownerIndex, ownerName); err != nil {
		return err
	}
	builder := ctrl.NewControllerManagedBy(manager).For(&api.Widget{}).Owns(&api.Part{})
	if err := builder.Complete(&widgetReconciler{manager.GetClient()}); err != nil {
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
