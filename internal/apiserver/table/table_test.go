package table_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tetherkube/tether/internal/apiserver/table"
)

var now = time.Date(2026, 12, 2, 4, 17, 49, 0, time.UTC)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var obj map[string]any
	if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// render is a table as text: a line of names, and one for each row.
func render(tbl *metav1.Table) string {
	var lines []string
	var names []string
	for _, c := range tbl.ColumnDefinitions {
		name := c.Name
		if c.Priority > 0 {
			name = "(" + name + ")"
		}
		names = append(names, name)
	}
	lines = append(lines, strings.Join(names, " | "))
	for _, r := range tbl.Rows {
		var cells []string
		for _, c := range r.Cells {
			raw, err := json.Marshal(c)
			if err != nil {
				raw = []byte(err.Error())
			}
			cells = append(cells, string(raw))
		}
		lines = append(lines, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(strings.Join(cells, " | ")))
	}
	return strings.Join(lines, "\n")
}

// What the real server shows of the same objects.
func TestBuiltInTypesAreShownAsTheRealServerDoes(t *testing.T) {
	t.Parallel()
	const created = `metadata: {name: x, creationTimestamp: "2026-12-02T04:07:39Z"}`
	for name, test := range map[string]struct{ obj, want string }{
		"a namespace": {
			`{apiVersion: v1, kind: Namespace, ` + created + `, status: {phase: Active}}`,
			"Name | Status | Age\n" + `"x" | "Active" | "10m"`,
		},
		"a ConfigMap": {
			`{apiVersion: v1, kind: ConfigMap, ` + created + `, data: {a: b}, binaryData: {c: aGk=}}`,
			"Name | Data | Age\n" + `"x" | 2 | "10m"`,
		},
		"a Secret": {
			`{apiVersion: v1, kind: Secret, ` + created + `, type: Opaque, data: {a: b}}`,
			"Name | Type | Data | Age\n" + `"x" | "Opaque" | 1 | "10m"`,
		},
		"a ServiceAccount": {
			`{apiVersion: v1, kind: ServiceAccount, ` + created + `}`,
			"Name | Age\n" + `"x" | "10m"`,
		},
		"a pod that waits for a node": {
			`{apiVersion: v1, kind: Pod, ` + created + `, spec: {containers: [{name: a}, {name: c}], readinessGates: [{conditionType: foo}]}, status: {phase: Pending}}`,
			"Name | Ready | Status | Restarts | Age | (IP) | (Node) | (Nominated Node) | (Readiness Gates)\n" +
				`"x" | "0/2" | "Pending" | "0" | "10m" | "<none>" | "<none>" | "<none>" | "0/1"`,
		},
		"a Service": {
			`{apiVersion: v1, kind: Service, ` + created + `, spec: {type: NodePort, clusterIP: 10.96.0.182, clusterIPs: [10.96.0.182], externalIPs: [1.2.3.4], selector: {c: d, a: b}, ports: [{port: 80, nodePort: 30393, protocol: TCP}, {port: 81, protocol: UDP}]}}`,
			"Name | Type | Cluster-IP | External-IP | Port(s) | Age | (Selector)\n" +
				`"x" | "NodePort" | "10.96.0.182" | "1.2.3.4" | "80:30393/TCP,81/UDP" | "10m" | "a=b,c=d"`,
		},
		"a Service elsewhere": {
			`{apiVersion: v1, kind: Service, ` + created + `, spec: {type: ExternalName, externalName: foo.example.com}}`,
			"Name | Type | Cluster-IP | External-IP | Port(s) | Age | (Selector)\n" +
				`"x" | "ExternalName" | "<none>" | "foo.example.com" | "<none>" | "10m" | "<none>"`,
		},
		"a Service that waits for its balancer": {
			`{apiVersion: v1, kind: Service, ` + created + `, spec: {type: LoadBalancer}}`,
			"Name | Type | Cluster-IP | External-IP | Port(s) | Age | (Selector)\n" +
				`"x" | "LoadBalancer" | "<none>" | "<pending>" | "<none>" | "10m" | "<none>"`,
		},
		"a Deployment": {
			`{apiVersion: apps/v1, kind: Deployment, ` + created + `, spec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {spec: {containers: [{name: a, image: b}, {name: c, image: d}]}}}}`,
			"Name | Ready | Up-to-date | Available | Age | (Containers) | (Images) | (Selector)\n" +
				`"x" | "0/2" | 0 | 0 | "10m" | "a,c" | "b,d" | "a=b"`,
		},
		"a Lease": {
			`{apiVersion: coordination.k8s.io/v1, kind: Lease, ` + created + `, spec: {holderIdentity: me}}`,
			"Name | Holder | Age\n" + `"x" | "me" | "10m"`,
		},
		"a Role": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, ` + created + `}`,
			"Name | Created At\n" + `"x" | "2026-12-02T04:07:39Z"`,
		},
		"a RoleBinding": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, ` + created + `, roleRef: {kind: Role, name: role}, subjects: [{kind: User, name: u}, {kind: Group, name: g}, {kind: ServiceAccount, name: sa, namespace: default}, {kind: User, name: u2}]}`,
			"Name | Role | Age | (Users) | (Groups) | (ServiceAccounts)\n" + `"x" | "Role/role" | "10m" | "u, u2" | "g" | "default/sa"`,
		},
		"an Event": {
			`{apiVersion: v1, kind: Event, ` + created + `, type: Warning, reason: Because, message: " hello ", count: 3, firstTimestamp: "2026-12-01T00:00:00Z", lastTimestamp: "2026-12-02T00:00:00Z", source: {component: comp, host: h}, involvedObject: {kind: Pod, name: pod, namespace: default, fieldPath: spec.x}}`,
			"Last Seen | Type | Reason | Object | (Subobject) | (Source) | Message | (First Seen) | (Count) | (Name)\n" +
				`"4h17m" | "Warning" | "Because" | "pod/pod" | "spec.x" | "comp, h" | "hello" | "28h" | 3 | "x"`,
		},
		"an Event of the newer group": {
			`{apiVersion: events.k8s.io/v1, kind: Event, ` + created + `, type: Normal, reason: Why, note: hi, eventTime: "2026-12-01T00:00:00.000000Z", series: {count: 4, lastObservedTime: "2026-12-02T01:00:00.000000Z"}, reportingController: example.com/x, reportingInstance: q, regarding: {kind: Pod, name: pod}}`,
			"Last Seen | Type | Reason | Object | (Subobject) | (Source) | Message | (First Seen) | (Count) | (Name)\n" +
				`"3h17m" | "Normal" | "Why" | "pod/pod" | "" | "example.com/x, q" | "hi" | "28h" | 4 | "x"`,
		},
		"a definition": {
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, ` + created + `, spec: {group: t.example.com, scope: Namespaced, names: {kind: Thing, shortNames: [th, tg]}, versions: [{name: v2, served: true}, {name: v1, served: true, storage: true}, {name: v0, served: false}]}, status: {conditions: [{type: Established, status: "True"}]}}`,
			"Name | Scope | Versions | Created At | (Group) | (Kind) | (ShortNames) | (Established)\n" +
				`"x" | "Namespaced" | "v2,v1(storage)" | "2026-12-02T04:07:39Z" | "t.example.com" | "Thing" | "th,tg" | true`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := parse(t, test.obj)
			gvk := schema.FromAPIVersionAndKind(obj["apiVersion"].(string), obj["kind"].(string))
			got := table.Of(table.BuiltIn(gvk), []map[string]any{obj}, "", now)
			if diff := cmp.Diff(test.want, render(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, c := range got.ColumnDefinitions {
				if c.Description == "" {
					t.Errorf("%s is not described", c.Name)
				}
			}
		})
	}
}

func TestAPodsContainersSayHowItIs(t *testing.T) {
	t.Parallel()
	const spec = `spec: {initContainers: [{name: i}, {name: s, restartPolicy: Always}], containers: [{name: a}, {name: b}]}`
	for status, want := range map[string]string{
		`{phase: Running, containerStatuses: [{name: a, ready: true, state: {running: {}}}, {name: b, ready: true, state: {running: {}}, restartCount: 2, lastState: {terminated: {finishedAt: "2026-12-02T04:12:49Z"}}}]}`: `"2/3" | "Running" | "2 (5m ago)"`,
		`{phase: Pending, initContainerStatuses: [{name: i, state: {waiting: {reason: ImagePullBackOff}}}]}`:                                                                                                                `"0/3" | "Init:ImagePullBackOff" | "0"`,
		`{phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0}}}, {name: s, state: {waiting: {reason: PodInitializing}}}]}`:                                                                  `"0/3" | "Init:1/2" | "0"`,
		`{phase: Running, initContainerStatuses: [{name: i, restartCount: 4, state: {terminated: {exitCode: 0}}}, {name: s, started: true, ready: true, restartCount: 1}]}`:                                                 `"1/3" | "Running" | "1"`,
		`{phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 3}}}]}`:                                                                                                                          `"0/3" | "Init:ExitCode:3" | "0"`,
		`{phase: Running, containerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff}}}]}`:                                                                                                                    `"0/3" | "CrashLoopBackOff" | "0"`,
		`{phase: Running, containerStatuses: [{name: a, state: {terminated: {reason: Completed}}}, {name: b, ready: true, state: {running: {}}}]}`:                                                                          `"1/3" | "NotReady" | "0"`,
		`{phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: a, state: {terminated: {reason: Completed}}}, {name: b, ready: true, state: {running: {}}}]}`:                             `"1/3" | "Running" | "0"`,
		`{phase: Failed, containerStatuses: [{name: a, state: {terminated: {reason: Completed}}}, {name: b, state: {terminated: {exitCode: 1, signal: 9}}}]}`:                                                               `"0/3" | "Signal:9" | "0"`,
		`{phase: Failed, reason: Evicted}`: `"0/3" | "Evicted" | "0"`,
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			pod := parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: x}, `+spec+`, status: `+status+`}`)
			got := table.Of(table.BuiltIn(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})[1:4], []map[string]any{pod}, metav1.IncludeNone, now)
			if _, row, _ := strings.Cut(render(got), "\n"); row != want {
				t.Errorf("%s", row)
			}
		})
	}
}

func TestAPodThatHasEndedOrEndsIsSaidToDoSo(t *testing.T) {
	t.Parallel()
	columns := table.BuiltIn(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	ended := parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: x, deletionTimestamp: "2026-12-02T04:07:39Z"}, status: {phase: Succeeded}}`)
	ending := parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: x, deletionTimestamp: "2026-12-02T04:07:39Z"}, status: {phase: Running}}`)
	got := table.Of(columns, []map[string]any{ended, ending}, "", now)
	if got.Rows[0].Cells[2] != "Succeeded" || got.Rows[1].Cells[2] != "Terminating" {
		t.Errorf("%s", render(got))
	}
	if diff := cmp.Diff([]metav1.TableRowCondition{{
		Type: "Completed", Status: "True", Reason: "Succeeded", Message: "The pod has completed successfully.",
	}}, got.Rows[0].Conditions); diff != "" || got.Rows[1].Conditions != nil {
		t.Errorf("conditions (-want +got):\n%s\n%v", diff, got.Rows[1].Conditions)
	}
}

func TestACustomResourceIsShownByItsColumns(t *testing.T) {
	t.Parallel()
	columns, err := table.Custom([]any{
		map[string]any{"name": "Text", "type": "string", "jsonPath": ".spec.text"},
		map[string]any{"name": "Number", "type": "integer", "jsonPath": ".spec.number", "priority": int64(1), "format": "int32", "description": "How many."},
		map[string]any{"name": "Ratio", "type": "number", "jsonPath": ".spec.ratio"},
		map[string]any{"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
		map[string]any{"name": "When", "type": "date", "jsonPath": ".spec.when"},
		map[string]any{"name": "Ready", "type": "string", "jsonPath": `.status.conditions[?(@.type=="Ready")].status`},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := table.Of(columns, []map[string]any{
		parse(t, `{metadata: {name: full}, spec: {text: a, number: 3, ratio: 2, "on": true, when: "2026-12-02T04:00:00Z"}, status: {conditions: [{type: Other, status: "False"}, {type: Ready, status: "True"}]}}`),
		parse(t, `{metadata: {name: empty}}`),
		parse(t, `{metadata: {name: odd}, spec: {text: {a: 1}, number: x, ratio: x, "on": x, when: x}}`),
	}, "", now)
	want := `Name | Text | (Number) | Ratio | On | When | Ready
"full" | "a" | 3 | 2 | true | "17m" | "True"
"empty" | null | null | null | null | null | null
"odd" | "{\"a\":1}" | null | null | null | "<invalid>" | null`
	if diff := cmp.Diff(want, render(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d := got.ColumnDefinitions; d[1].Description != "Custom resource definition column (in JSONPath format): .spec.text" || d[2].Description != "How many." || d[2].Format != "int32" {
		t.Errorf("%+v", d)
	}
}

func TestACustomResourceWithoutColumnsHasItsAge(t *testing.T) {
	t.Parallel()
	columns, err := table.Custom(nil)
	if err != nil {
		t.Fatal(err)
	}
	got := table.Of(columns, []map[string]any{parse(t, `{metadata: {name: x, creationTimestamp: "2026-12-02T04:07:39Z"}}`)}, "", now)
	if diff := cmp.Diff("Name | Age\n"+`"x" | "10m"`, render(got)); diff != "" || got.ColumnDefinitions[1].Type != "date" {
		t.Errorf("%s (-want +got):\n%s", got.ColumnDefinitions[1].Type, diff)
	}
}

func TestAPathThatIsNoneIsAnError(t *testing.T) {
	t.Parallel()
	_, err := table.Custom([]any{map[string]any{"name": "A", "type": "string", "jsonPath": ".spec[?("}})
	if err == nil || err.Error() != `unrecognized column definition ".spec[?("` {
		t.Errorf("%v", err)
	}
}

func TestWhatGoesWithARowIsWhatWasAsked(t *testing.T) {
	t.Parallel()
	obj := parse(t, `{apiVersion: a/v1, kind: A, metadata: {name: x, labels: {a: b}}, spec: {c: d}}`)
	for include, want := range map[metav1.IncludeObjectPolicy]string{
		metav1.IncludeNone:     `null`,
		metav1.IncludeObject:   `{"apiVersion":"a/v1","kind":"A","metadata":{"labels":{"a":"b"},"name":"x"},"spec":{"c":"d"}}`,
		metav1.IncludeMetadata: `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","labels":{"a":"b"}}}`,
		"":                     `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","labels":{"a":"b"}}}`,
	} {
		got, err := json.Marshal(table.Of(table.BuiltIn(schema.GroupVersionKind{}), []map[string]any{obj}, include, now).Rows[0].Object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, strings.TrimSpace(string(got))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", include, diff)
		}
	}
}
