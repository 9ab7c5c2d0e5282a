package table

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func outOf(n, all int) string { return fmt.Sprintf("%d/%d", n, all) }

func externalIP(s *corev1.Service) string {
	ips := strings.Join(s.Spec.ExternalIPs, ",")
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return orNone(ips)
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var all []string
		for _, in := range s.Status.LoadBalancer.Ingress {
			if address := cmp.Or(in.IP, in.Hostname); address != "" {
				all = append(all, address)
			}
		}
		slices.Sort(all)
		if all = append(slices.Compact(all), s.Spec.ExternalIPs...); len(all) > 0 {
			return strings.Join(all, ",")
		}
		return "<pending>"
	}
	return "<unknown>"
}

func ports(s *corev1.Service) string {
	var each []string
	for _, p := range s.Spec.Ports {
		port := strconv.Itoa(int(p.Port))
		if p.NodePort > 0 {
			port += ":" + strconv.Itoa(int(p.NodePort))
		}
		each = append(each, port+"/"+string(p.Protocol))
	}
	return orNone(strings.Join(each, ","))
}

// events are those of either API group: the newer one has other names for the
// same fields.
func events() []Column {
	doc, object := corev1.Event{}.SwaggerDoc(), corev1.ObjectReference{}.SwaggerDoc()
	column := func(name, description string, cell func(*corev1.Event, item) any) Column {
		return typed(name, description, func(both *eitherEvent, i item) any { return cell(both.core(), i) })
	}
	last := name()
	return []Column{
		column("Last Seen", doc["lastTimestamp"], func(e *corev1.Event, i item) any { _, last := seen(e); return i.since(last) }),
		text("Type", doc["type"], "type"),
		text("Reason", doc["reason"], "reason"),
		column("Object", doc["involvedObject"], func(e *corev1.Event, _ item) any {
			kind := strings.ToLower(e.InvolvedObject.Kind)
			if e.InvolvedObject.Name == "" {
				return kind
			}
			return kind + "/" + e.InvolvedObject.Name
		}),
		wide(column("Subobject", object["fieldPath"], func(e *corev1.Event, _ item) any { return e.InvolvedObject.FieldPath })),
		wide(column("Source", doc["source"], func(e *corev1.Event, _ item) any {
			component := cmp.Or(e.Source.Component, e.ReportingController)
			if host := cmp.Or(e.Source.Host, e.ReportingInstance); host != "" {
				return component + ", " + host
			}
			return component
		})),
		column("Message", doc["message"], func(e *corev1.Event, _ item) any { return strings.TrimSpace(e.Message) }),
		wide(column("First Seen", doc["firstTimestamp"], func(e *corev1.Event, i item) any { first, _ := seen(e); return i.since(first) })),
		wide(column("Count", doc["count"], func(e *corev1.Event, _ item) any {
			if e.Series != nil {
				return int64(e.Series.Count)
			}
			return int64(max(e.Count, 1))
		})),
		wide(last),
	}
}

// seen is when an event was seen first and last.
func seen(e *corev1.Event) (first, last time.Time) {
	if first = e.FirstTimestamp.Time; first.IsZero() {
		first = e.EventTime.Time
	}
	if last = e.LastTimestamp.Time; last.IsZero() {
		last = first
	}
	if e.Series != nil {
		last = e.Series.LastObservedTime.Time
	}
	return first, last
}

// eitherEvent has the fields of both groups' events; those of one are set.
type eitherEvent struct {
	metav1.TypeMeta `json:",inline"`

	EventTime           metav1.MicroTime    `json:"eventTime"`
	Series              *corev1.EventSeries `json:"series"`
	ReportingController string              `json:"reportingController"`
	ReportingInstance   string              `json:"reportingInstance"`

	// Of the older group.
	ReportingComponent string                 `json:"reportingComponent"`
	InvolvedObject     corev1.ObjectReference `json:"involvedObject"`
	Message            string                 `json:"message"`
	Source             corev1.EventSource     `json:"source"`
	FirstTimestamp     metav1.Time            `json:"firstTimestamp"`
	LastTimestamp      metav1.Time            `json:"lastTimestamp"`
	Count              int32                  `json:"count"`

	// Of the newer one.
	Regarding                corev1.ObjectReference `json:"regarding"`
	Note                     string                 `json:"note"`
	DeprecatedSource         corev1.EventSource     `json:"deprecatedSource"`
	DeprecatedFirstTimestamp metav1.Time            `json:"deprecatedFirstTimestamp"`
	DeprecatedLastTimestamp  metav1.Time            `json:"deprecatedLastTimestamp"`
	DeprecatedCount          int32                  `json:"deprecatedCount"`
}

func (e *eitherEvent) core() *corev1.Event {
	c := &corev1.Event{
		EventTime: e.EventTime, Series: e.Series, ReportingInstance: e.ReportingInstance,
		ReportingController: cmp.Or(e.ReportingComponent, e.ReportingController),
		InvolvedObject:      e.InvolvedObject, Message: e.Message, Source: e.Source,
		FirstTimestamp: e.FirstTimestamp, LastTimestamp: e.LastTimestamp, Count: e.Count,
	}
	if e.APIVersion == eventsv1.SchemeGroupVersion.String() {
		c.InvolvedObject, c.Message, c.Source = e.Regarding, e.Note, e.DeprecatedSource
		c.FirstTimestamp, c.LastTimestamp, c.Count = e.DeprecatedFirstTimestamp, e.DeprecatedLastTimestamp, e.DeprecatedCount
	}
	return c
}
