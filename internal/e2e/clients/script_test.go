package clients

import (
	"strings"
	"testing"
)

// definition is one of a group of the test's own, named after its namespace.
const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: $WS.$NS.example.com}
spec:
  group: $NS.example.com
  scope: Namespaced
  names: {plural: $WS, singular: $W, kind: $K, shortNames: [$SHORT], categories: [all$NS]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.count}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Phase, type: string, jsonPath: .status.phase, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: Widget is a thing to test with.
        properties:
          spec:
            type: object
            description: What is wanted.
            properties:
              size: {type: integer, minimum: 1, maximum: 9, description: How big it is.}
              color: {type: string, default: red, enum: [red, green]}
              port: {x-kubernetes-int-or-string: true}
              rows:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [key]
                items:
                  type: object
                  required: [key]
                  properties: {key: {type: string, description: What it is called.}, value: {type: string}}
          status: {type: object, properties: {phase: {type: string}, count: {type: integer}}}
`

func widget(name, spec string) string {
	return "apiVersion: $NS.example.com/v1\nkind: $K\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

// established are the steps that bring a definition to life.
var established = []step{
	{args: "apply -f -", input: definition},
	{args: "wait --for=condition=Established crd/$WS.$NS.example.com --timeout=30s"},
}

func with(steps ...step) []step {
	return append(established[:len(established):len(established)], steps...)
}

func TestScaleDoesTheSame(t *testing.T) {
	t.Parallel()
	play(t, with(
		step{args: "-n $NS apply -f -", input: widget("a", "{size: 1}")},
		step{args: "-n $NS scale $W/a --replicas=3"},
		step{args: "-n $NS scale $W/a --replicas=4 --current-replicas=3"},
		step{args: "-n $NS scale $W/a --replicas=5 --current-replicas=3"},
		step{args: "-n $NS scale $W/a --replicas=99"},
		step{args: "-n $NS scale $W/none --replicas=3"},
		step{args: "-n $NS get $W a --subresource=scale -o yaml"},
		step{args: "-n $NS get $W a -o yaml --show-managed-fields"},
		step{args: "-n $NS patch $W a --subresource=scale --type=merge -p '{\"spec\":{\"replicas\":2}}'"},
		step{args: "-n $NS get $W a"},
	))
}

func TestGetShowsTheSame(t *testing.T) {
	t.Parallel()
	play(t, with(
		step{args: "-n $NS apply -f -", input: widget("a", "{size: 1}") + "---\n" + widget("b", "{size: 2, rows: [{key: k, value: v}]}")},
		step{args: "-n $NS get $WS"},
		step{args: "-n $NS get $SHORT a -o wide"},
		step{args: "-n $NS get $WS.$NS.example.com -o name"},
		step{args: "-n $NS get $W a -o yaml"},
		step{args: "-n $NS get $W a -o yaml --show-managed-fields"},
		step{args: "-n $NS get $WS -o json"},
		step{args: "-n $NS get $WS --no-headers --sort-by=.spec.size"},
		step{args: "-n $NS get $WS -o jsonpath={.items[*].spec.size}"},
		step{args: "-n $NS get $WS --chunk-size=1"},
		step{args: "-n $NS get $WS -l a=b"},
		step{args: "-n $NS get $WS --field-selector=metadata.name=a"},
		step{args: "-n $NS get $WS --field-selector=spec.size=1"},
		step{args: "-n $NS get all$NS"},
		step{args: "-n $NS get $W none"},
		step{args: "-n $NS get nothings"},
		step{args: "-n $NS get $W a --subresource=status"},
		step{args: "get $WS -A --field-selector=metadata.namespace=$NS"},
		step{args: "-n $NS describe $W a"},
		step{args: "-n $NS describe $WS"},
		step{args: "get crd $WS.$NS.example.com"},
		step{args: "get namespace $NS -o yaml"},
	))
}

func TestApplyDoesTheSame(t *testing.T) {
	t.Parallel()
	play(t, with(
		step{args: "-n $NS apply -f -", input: widget("a", "{size: 1, color: green}")},
		step{args: "-n $NS apply -f -", input: widget("a", "{size: 1, color: green}")},
		step{args: "-n $NS diff -f -", input: widget("a", "{size: 2}")},
		step{args: "-n $NS apply --dry-run=server -f -", input: widget("a", "{size: 2}")},
		step{args: "-n $NS apply -f -", input: widget("a", "{size: 2}")},
		step{args: "-n $NS diff -f -", input: widget("a", "{size: 2}")},
		step{args: "-n $NS get $W a -o yaml"},
		step{args: "-n $NS apply -f -", input: widget("a", "{size: 99}")},
		step{args: "-n $NS apply -f -", input: widget("b", "{sizze: 1}")},
		step{args: "-n $NS apply --validate=warn -f -", input: widget("b", "{sizze: 1}")},
		step{args: "-n $NS apply --validate=false -f -", input: widget("c", "{sizze: 1}")},
		step{args: "-n $NS create -f -", input: widget("b", "{size: 1}")},
		step{args: "-n $NS create --dry-run=server -f -", input: widget("d", "{size: 1}")},
		step{args: "-n $NS replace -f -", input: widget("b", "{size: 3}")},
		step{args: "-n $NS apply view-last-applied $W/a"},
		step{args: "-n $NS apply --prune -l a=b -f -", input: widget("a", "{size: 2}")},
	))
}

func TestServerSideApplyDoesTheSame(t *testing.T) {
	t.Parallel()
	play(t, with(
		step{args: "-n $NS apply --server-side -f -", input: widget("a", "{size: 1, rows: [{key: k, value: v}]}")},
		step{args: "-n $NS apply --server-side -f -", input: widget("a", "{size: 1, rows: [{key: k, value: v}]}")},
		step{args: "-n $NS apply --server-side --field-manager=other -f -", input: widget("a", "{size: 2}")},
		step{args: "-n $NS apply --server-side --field-manager=other --force-conflicts -f -", input: widget("a", "{size: 2, rows: [{key: l}]}")},
		step{args: "-n $NS diff --server-side -f -", input: widget("a", "{size: 3}")},
		step{args: "-n $NS get $W a -o yaml --show-managed-fields"},
		step{args: "-n $NS apply --server-side -f -", input: widget("a", "{rows: []}")},
		step{args: "-n $NS apply --server-side --validate=strict -f -", input: widget("a", "{odd: 1}")},
		step{args: "-n $NS apply -f -", input: widget("m", "{size: 1, color: green}")},
		step{args: "-n $NS apply --server-side -f -", input: widget("m", "{size: 1}")},
		step{args: "-n $NS get $W m -o yaml --show-managed-fields"},
	))
}

func TestPatchAndEditDoTheSame(t *testing.T) {
	t.Parallel()
	play(t, with(
		step{args: "-n $NS apply -f -", input: widget("a", "{size: 1}")},
		step{args: `-n $NS patch $W a --type=merge -p '{"spec":{"size":2}}'`},
		step{args: `-n $NS patch $W a --type=merge -p '{"spec":{"size":2}}'`},
		step{args: `-n $NS patch $W a --type=json -p '[{"op":"replace","path":"/spec/size","value":3}]'`},
		step{args: `-n $NS patch $W a --type=json -p '[{"op":"test","path":"/spec/size","value":9}]'`},
		step{args: `-n $NS patch $W a --type=strategic -p '{"spec":{"size":4}}'`},
		step{args: `-n $NS patch $W a -p '{"spec":{"size":4}}'`},
		step{args: `-n $NS patch $W a --subresource=status --type=merge -p '{"status":{"phase":"Up"}}'`},
		step{args: `-n $NS patch $W a --type=merge -p '{"spec":{"size":99}}'`},
		step{args: `-n $NS patch $W none --type=merge -p '{}'`},
		step{args: "-n $NS label $W a l=1"},
		step{args: "-n $NS label $W a l=2"},
		step{args: "-n $NS label $W a l=2 --overwrite"},
		step{args: "-n $NS annotate $W a n=1"},
		step{args: "-n $NS label $W a l-"},
		step{args: "-n $NS edit $W a", env: "KUBE_EDITOR=sed -i s/size:.*/size:\\ 7/"},
		step{args: "-n $NS get $W a -o yaml"},
		step{args: "-n $NS edit $W a", env: "KUBE_EDITOR=true"},
		step{args: "-n $NS edit $W a", env: "KUBE_EDITOR=sed -i s/size:.*/size:\\ 77/"},
		step{args: "-n $NS create configmap c --from-literal=a=b"},
		step{args: `-n $NS patch configmap c -p '{"data":{"c":"d"}}'`},
		step{args: `-n $NS set env deployment/none A=b`},
		step{args: "-n $NS get configmap c -o yaml"},
		step{args: "-n $NS edit configmap c", env: "KUBE_EDITOR=sed -i s/c:\\ d/c:\\ e/"},
		step{args: "-n $NS get configmap c -o jsonpath={.data}"},
	))
}

func TestDeletionAndWaitDoTheSame(t *testing.T) {
	t.Parallel()
	held := strings.Replace(widget("held", "{size: 1}"), "{name: held}", "{name: held, finalizers: [example.com/f]}", 1)
	play(t, with(
		step{args: "-n $NS apply -f -", input: widget("a", "{size: 1}") + "---\n" + widget("b", "{}") + "---\n" + widget("c", "{}") + "---\n" + held},
		step{args: "-n $NS wait --for=jsonpath={.spec.size}=1 $W/a --timeout=20s"},
		step{args: "-n $NS wait --for=condition=Ready $W/a --timeout=1s"},
		step{args: "-n $NS wait --for=delete $W/none --timeout=5s"},
		step{args: "-n $NS delete $W a"},
		step{args: "-n $NS delete $W a"},
		step{args: "-n $NS delete $W a --ignore-not-found"},
		step{args: "-n $NS delete $W b --cascade=background"},
		step{args: "-n $NS delete $W c --cascade=orphan --wait=false"},
		step{args: "-n $NS get $W c -o jsonpath={.metadata.finalizers}"},
		step{args: "-n $NS delete $W held --cascade=foreground --wait=false"},
		step{args: "-n $NS get $W held -o jsonpath={.metadata.finalizers}"},
		step{args: "-n $NS delete $W held --timeout=1s"},
		step{args: `-n $NS patch $W held --type=merge -p '{"metadata":{"finalizers":null}}'`},
		step{args: `-n $NS patch $W c --type=merge -p '{"metadata":{"finalizers":null}}'`},
		step{args: "-n $NS wait --for=delete $W/held --timeout=20s"},
		step{args: "-n $NS get $WS"},
		step{args: "-n $NS apply -f -", input: widget("x", "{}") + "---\n" + widget("y", "{}")},
		step{args: "-n $NS delete $WS --all"},
		step{args: "delete crd $WS.$NS.example.com"},
		step{args: "-n $NS get $WS"},
	))
}

func TestExplainAndDiscoveryTellTheSame(t *testing.T) {
	t.Parallel()
	play(t, with(
		step{args: "api-resources --api-group=$NS.example.com"},
		step{args: "api-resources --api-group=$NS.example.com -o wide"},
		step{args: "api-resources --api-group=coordination.k8s.io -o wide"},
		step{args: "api-resources --api-group=rbac.authorization.k8s.io -o wide"},
		step{args: "explain $WS.$NS.example.com"},
		step{args: "explain $WS.$NS.example.com --recursive"},
		step{args: "explain $WS.$NS.example.com.spec.rows"},
		step{args: "explain $WS.spec.size --api-version=$NS.example.com/v1"},
		step{args: "explain $WS.spec.odd --api-version=$NS.example.com/v1"},
		step{args: "explain configmap"},
		step{args: "explain secret.data"},
		step{args: "explain deployment.spec.template.spec.containers.env"},
		step{args: "explain deployment.spec.template.spec.containers", differs: "what is an enum stands only in comments of the Go source"},
		step{args: "explain lease.spec"},
		step{args: "explain pod.spec.containers.volumeMounts.name"},
		step{args: "explain pod.spec.hostAliases --recursive"},
		step{args: "explain service.spec.ports.port"},
		step{args: "explain service.spec.ports.targetPort", differs: "the words on a type like IntOrString stand only in comments of the Go source"},
		step{args: "explain $WS.metadata --api-version=$NS.example.com/v1"},
		step{args: "auth can-i create $WS.$NS.example.com -n $NS"},
		step{args: "auth can-i '*' '*' --all-namespaces"},
		step{args: "auth can-i create nothings"},
		step{args: "-n $NS get $WS -v=0 --warnings-as-errors"},
		step{args: "get --raw /readyz"},
	))
}

func TestBuiltInTypesShowTheSame(t *testing.T) {
	t.Parallel()
	play(t, []step{
		{args: "-n $NS create configmap c --from-literal=a=b --from-literal=c=d"},
		{args: "-n $NS create secret generic s --from-literal=a=b"},
		{args: "-n $NS create serviceaccount sa"},
		{args: "-n $NS create role r --verb=get,list --resource=configmaps"},
		{args: "-n $NS create rolebinding rb --role=r --serviceaccount=$NS:sa --user=u --group=g"},
		{args: "-n $NS create deployment d --image=i --replicas=2"},
		{args: "-n $NS create service clusterip svc --tcp=80:8080 --clusterip=None"},
		{args: "-n $NS get configmaps,secrets,serviceaccounts,roles,rolebindings,deployments,services --field-selector=metadata.name!=default"},
		{args: "-n $NS get roles,rolebindings,deployments,services -o wide"},
		{args: "-n $NS get configmap c -o yaml"},
		{args: "-n $NS get secret s -o yaml"},
		{args: "-n $NS get role r -o yaml"},
		{args: "-n $NS get rolebinding rb -o yaml"},
		{args: "-n $NS get deployment d -o yaml", differs: "not all defaults of pods are filled in"},
		{args: "-n $NS get service svc -o yaml"},
		{args: "-n $NS describe configmap c"},
		{args: "-n $NS describe secret s"},
		{args: "-n $NS describe deployment d"},
		{args: "-n $NS describe rolebinding rb"},
		{args: "-n $NS scale deployment d --replicas=3", differs: "there is no scale subresource"},
		{args: "-n $NS set image deployment/d i=j"},
		{args: "-n $NS get deployment d -o jsonpath={.spec.template.spec.containers[*].image}"},
		{args: "-n $NS apply -f -", input: "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: l}\nspec: {holderIdentity: me}\n"},
		{args: "-n $NS get lease"},
		{args: "-n $NS create -f -", input: "apiVersion: v1\nkind: Event\nmetadata: {name: e}\ntype: Normal\nreason: Why\nmessage: hi\ncount: 2\nsource: {component: c}\ninvolvedObject: {kind: ConfigMap, name: c, namespace: $NS, apiVersion: v1}\nlastTimestamp: '2026-01-02T03:04:05Z'\nfirstTimestamp: '2026-01-02T03:04:05Z'\n"},
		{args: "-n $NS get events -o wide"},
		{args: "-n $NS events"},
		{args: "-n $NS delete deployment,configmap --all"},
	})
}
