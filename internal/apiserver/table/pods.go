package table

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pods() []Column {
	spec, status := corev1.PodSpec{}.SwaggerDoc(), corev1.PodStatus{}.SwaggerDoc()
	return []Column{
		name(),
		typed("Ready", "The aggregate readiness state of this pod for accepting traffic.",
			func(p *corev1.Pod, _ item) any { v := view(p); return outOf(v.ready, v.containers) }),
		typed("Status", "The aggregate status of the containers in this pod.", func(p *corev1.Pod, _ item) any { return view(p).reason }),
		typed("Restarts", "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.",
			func(p *corev1.Pod, i item) any {
				v := view(p)
				if v.restarts == 0 || v.restarted.IsZero() {
					return strconv.Itoa(v.restarts)
				}
				return fmt.Sprintf("%d (%s ago)", v.restarts, i.since(v.restarted))
			}),
		age(),
		wide(typed("IP", status["podIP"], func(p *corev1.Pod, _ item) any {
			if len(p.Status.PodIPs) == 0 {
				return none
			}
			return orNone(p.Status.PodIPs[0].IP)
		})),
		wide(typed("Node", spec["nodeName"], func(p *corev1.Pod, _ item) any { return orNone(p.Spec.NodeName) })),
		wide(typed("Nominated Node", status["nominatedNodeName"], func(p *corev1.Pod, _ item) any { return orNone(p.Status.NominatedNodeName) })),
		wide(typed("Readiness Gates", spec["readinessGates"], func(p *corev1.Pod, _ item) any {
			if len(p.Spec.ReadinessGates) == 0 {
				return none
			}
			open := 0
			for _, g := range p.Spec.ReadinessGates {
				if isTrue(p, g.ConditionType) {
					open++
				}
			}
			return outOf(open, len(p.Spec.ReadinessGates))
		})),
	}
}

func isTrue(p *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}

// podView is what a pod's containers come to.
type podView struct {
	reason            string
	ready, containers int
	restarts          int
	restarted         time.Time // the last time
}

func view(p *corev1.Pod) podView {
	v := podView{reason: string(p.Status.Phase), containers: len(p.Spec.Containers)}
	if p.Status.Reason != "" {
		v.reason = p.Status.Reason
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			v.reason = c.Reason
		}
	}
	sidecars := podView{} // restarts of those alone count once the pod has begun
	if initializing := v.beginning(p, &sidecars); !initializing || isTrue(p, corev1.PodInitialized) {
		v.restarts, v.restarted = sidecars.restarts, sidecars.restarted
		v.running(p)
	}
	terminal := p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
	switch {
	case p.DeletionTimestamp == nil:
	case p.Status.Reason == "NodeLost":
		v.reason = "Unknown"
	case !terminal:
		v.reason = "Terminating"
	}
	return v
}

func (v *podView) restartOf(c corev1.ContainerStatus) {
	v.restarts += int(c.RestartCount)
	if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(v.restarted) {
		v.restarted = t.FinishedAt.Time
	}
}

// beginning looks at the init containers, and says whether one has not done its
// part yet. Those that go on beside the others are sidecars.
func (v *podView) beginning(p *corev1.Pod, sidecars *podView) (initializing bool) {
	sidecar := map[string]bool{}
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecar[c.Name] = true
			v.containers++
		}
	}
	for i, c := range p.Status.InitContainerStatuses {
		v.restartOf(c)
		if sidecar[c.Name] {
			sidecars.restartOf(c)
		}
		ended, waiting := c.State.Terminated, c.State.Waiting
		switch {
		case ended != nil && ended.ExitCode == 0:
			continue
		case sidecar[c.Name] && c.Started != nil && *c.Started:
			if c.Ready {
				v.ready++
			}
			continue
		case ended != nil:
			v.reason = "Init:" + why(ended)
		case waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing":
			v.reason = "Init:" + waiting.Reason
		default:
			v.reason = "Init:" + outOf(i, len(p.Spec.InitContainers))
		}
		return true
	}
	return false
}

// running looks at the containers, of which the first has the last word.
func (v *podView) running(p *corev1.Pod) {
	running, failed := false, ""
	for _, c := range slices.Backward(p.Status.ContainerStatuses) {
		v.restartOf(c)
		switch ended, waiting := c.State.Terminated, c.State.Waiting; {
		case waiting != nil && waiting.Reason != "":
			v.reason = waiting.Reason
		case ended != nil:
			v.reason = why(ended)
			if ended.ExitCode != 0 {
				failed = v.reason
			}
		case c.Ready && c.State.Running != nil:
			running = true
			v.ready++
		}
	}
	switch {
	case v.reason != "Completed":
	case running && isTrue(p, corev1.PodReady):
		v.reason = "Running"
	case failed != "":
		v.reason = failed
	case running:
		v.reason = "NotReady"
	}
}

func why(ended *corev1.ContainerStateTerminated) string {
	switch {
	case ended.Reason != "":
		return ended.Reason
	case ended.Signal != 0:
		return fmt.Sprintf("Signal:%d", ended.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", ended.ExitCode)
}

// conditions are those of a row: that a pod has come to its end.
func conditions(obj map[string]any) []metav1.TableRowCondition {
	i := item{obj: obj}
	if i.text("kind") != "Pod" || i.text("apiVersion") != "v1" {
		return nil
	}
	end := metav1.TableRowCondition{Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: i.text("status", "phase")}
	switch corev1.PodPhase(end.Reason) {
	case corev1.PodSucceeded:
		end.Message = "The pod has completed successfully."
	case corev1.PodFailed:
		end.Message = "The pod failed."
	default:
		return nil
	}
	return []metav1.TableRowCondition{end}
}
