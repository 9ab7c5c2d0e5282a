#!/bin/sh
# Runs the Ticket controller against the cluster that kubectl speaks to, with a
# booking API to play with, books the samples, and goes on until Ctrl-C. Everything
# it starts ends with it; what it applied stays in the cluster.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
pids=
finish() {
	status=$?
	trap - EXIT
	trap '' INT TERM # a second one ends nothing before all is put away
	for pid in $pids; do kill "$pid" 2>/dev/null || :; done
	for pid in $pids; do wait "$pid" 2>/dev/null || :; done
	rm -rf "$work"
	exit $status
}
trap finish EXIT
trap 'exit 0' INT TERM

echo "Building the controller…"
(cd "$here/../.." && go build -o "$work/ticket-controller" ./examples/ticket-controller)
echo try-me >"$work/token"
"$work/ticket-controller" booking-server --listen 127.0.0.1:0 >"$work/booking-server" 2>"$work/bookings.log" &
pids="$pids $!"
url=
while [ -z "$url" ]; do
	kill -0 $! || { cat "$work/bookings.log"; exit 1; }
	url=$(sed -n 's|.*\(http://127.0.0.1:[0-9]*\).*|\1|p' "$work/booking-server" | head -n 1)
	[ -n "$url" ] || sleep 0.1
done
kubectl apply -f "$here/deploy/crd.yaml"
kubectl wait --for=condition=Established --timeout=30s crd/tickets.flights.com
"$work/ticket-controller" --booking-url "$url" --booking-token-file "$work/token" -v 1 &
controller=$!
pids="$pids $controller"
kubectl apply -f "$here/deploy/samples/"
kubectl wait --for=condition=Ready --timeout=60s tickets --all
kubectl get tickets
cat <<EOF

The tickets above are booked at $url. In another terminal, with
  export KUBECONFIG=${KUBECONFIG:-$HOME/.kube/config}
try:
  kubectl get tickets -w
  kubectl patch ticket to-new-york --type merge -p '{"spec":{"departureDate":"2027-05-02"}}'
  kubectl delete ticket to-new-york
  curl -s -H 'Authorization: Bearer try-me' $url/v1/bookings
Ctrl-C ends it.
EOF
[ "${TRY_ONCE:-}" ] || wait $controller
