#!/bin/sh
# Builds the controller's image with the Docker Engine that `docker` speaks to, under
# the name that is given: the same commit makes the same image, to the last byte. Go
# builds outside, so that the engine needs to pull nothing.
#
#   examples/ticket-controller/deploy/image/build.sh registry.example.com/ticket-controller:v0.2.0
set -eu
name=${1:?the name of the image is missing, as registry.example.com/ticket-controller:v0.2.0}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../../.." && pwd)
revision=$(git -C "$root" rev-parse HEAD)
moment=$(git -C "$root" log -1 --format=%ct)
version=${name##*:}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

(cd "$root" && CGO_ENABLED=0 GOFLAGS= go build -trimpath -buildvcs=true -ldflags "-s -w -buildid= -X main.version=$version" \
	-o "$work/ticket-controller" ./examples/ticket-controller)
go -C "$root/internal/tools" build -o "$work/image" ./image
"$work/image" roots >"$work/ca-certificates.crt"
chmod 0755 "$work/ticket-controller"
chmod 0644 "$work/ca-certificates.crt"
docker build --quiet --build-arg VERSION="$version" --build-arg REVISION="$revision" \
	--file "$here/Dockerfile" --tag "$name" "$work" >"$work/id"
# An engine writes down when it worked. What is loaded instead has the commit's time.
docker save "$name" | "$work/image" settle -moment "$moment" >"$work/settled.tar"
docker load --quiet --input "$work/settled.tar"
docker image inspect --format '{{.Id}}' "$name"
