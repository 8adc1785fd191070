// A controller on client-go alone: dynamic informers of the children and the parents, kstatus for whether a child is ready,
// an index by owner, and a workqueue. It writes where the condition changes.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

const (
	ownerIndex = "owner"
	workers    = 4
)

var (
	widgetResource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	partResource   = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "parts"}
)

type controller struct {
	client  dynamic.Interface
	widgets cache.SharedIndexInformer
	parts   cache.SharedIndexInformer
	queue   workqueue.TypedRateLimitingInterface[string]
}

// ownerKey is the key of the parent of a child.
func ownerKey(object any) (string, bool) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	part, ok := object.(*unstructured.Unstructured)
	if !ok {
		return "", false
	}
	owner := metav1.GetControllerOf(part)
	if owner == nil || owner.Kind != "Widget" {
		return "", false
	}
	return part.GetNamespace() + "/" + owner.Name, true
}

func (c *controller) enqueueOwner(object any) {
	if key, ok := ownerKey(object); ok {
		c.queue.Add(key)
	}
}

func (c *controller) enqueueWidget(object any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		c.queue.Add(key)
	}
}

func newController(client dynamic.Interface) (*controller, error) {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	c := &controller{
		client:  client,
		widgets: factory.ForResource(widgetResource).Informer(),
		parts:   factory.ForResource(partResource).Informer(),
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	err := c.parts.AddIndexers(cache.Indexers{ownerIndex: func(object any) ([]string, error) {
		if key, ok := ownerKey(object); ok {
			return []string{key}, nil
		}
		return nil, nil
	}})
	if err != nil {
		return nil, err
	}
	handlers := func(enqueue func(any)) cache.ResourceEventHandlerFuncs {
		return cache.ResourceEventHandlerFuncs{
			AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }, DeleteFunc: enqueue,
		}
	}
	if _, err := c.widgets.AddEventHandler(handlers(c.enqueueWidget)); err != nil {
		return nil, err
	}
	_, err = c.parts.AddEventHandler(handlers(c.enqueueOwner))
	return c, err
}

func (c *controller) work(ctx context.Context) {
	for {
		key, stopped := c.queue.Get()
		if stopped {
			return
		}
		if err := c.reconcile(ctx, key); err != nil {
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

// countReady counts the children of a parent that kstatus calls Current, and all.
func (c *controller) countReady(key string) (ready, all int, err error) {
	parts, err := c.parts.GetIndexer().ByIndex(ownerIndex, key)
	if err != nil {
		return 0, 0, err
	}
	for _, part := range parts {
		result, err := status.Compute(part.(*unstructured.Unstructured))
		if err != nil {
			return 0, 0, err
		}
		if result.Status == status.CurrentStatus {
			ready++
		}
	}
	return ready, len(parts), nil
}

func (c *controller) reconcile(ctx context.Context, key string) error {
	object, exists, err := c.widgets.GetIndexer().GetByKey(key)
	if err != nil || !exists {
		return err
	}
	widget := object.(*unstructured.Unstructured)
	ready, all, err := c.countReady(key)
	if err != nil {
		return err
	}
	condition := map[string]any{
		"type": "Ready", "status": "False", "reason": "PartsNotReady",
		"message": fmt.Sprintf("%d of %d parts are ready", ready, all),
	}
	if ready == all && ready > 0 {
		condition["status"], condition["reason"] = "True", "PartsReady"
	}
	conditions, changed := withCondition(widget, condition)
	if !changed {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return err
	}
	_, err = c.client.Resource(widgetResource).Namespace(widget.GetNamespace()).
		Patch(ctx, widget.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}

// withCondition is the parent's list of conditions with this one in it, and whether that is a change.
func withCondition(widget *unstructured.Unstructured, condition map[string]any) ([]any, bool) {
	stands, _, _ := unstructured.NestedSlice(widget.Object, "status", "conditions")
	condition["lastTransitionTime"] = time.Now().UTC().Format(time.RFC3339)
	kept := make([]any, 0, len(stands)+1)
	for _, entry := range stands {
		before, ok := entry.(map[string]any)
		if !ok || before["type"] != condition["type"] {
			kept = append(kept, entry)
			continue
		}
		if before["status"] == condition["status"] {
			if before["message"] == condition["message"] {
				return stands, false
			}
			condition["lastTransitionTime"] = before["lastTransitionTime"]
		}
	}
	return append(kept, condition), true
}

func run() error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	// The default is five requests a second, with which no start ends in time.
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	c, err := newController(client)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go c.widgets.RunWithContext(ctx)
	go c.parts.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), c.widgets.HasSynced, c.parts.HasSynced) {
		return fmt.Errorf("failed to list the parents and the children")
	}
	for range workers {
		go c.work(ctx)
	}
	<-ctx.Done()
	c.queue.ShutDown()
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
