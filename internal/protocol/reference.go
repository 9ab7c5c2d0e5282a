package protocol

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash"
	"io"
	"strconv"
)

// Identity is what a controller's references are made from beside the object.
type Identity struct {
	Controller string // <Domain>/<Name>
	Cluster    string
	Group      string
	Kind       string
}

// Reference is what the outside stores beside the thing: at most 63 characters of
// [a-z0-9-]. It is derived from the claim's fields, which Decide has held against
// the object by then, so that nobody can name what belongs to another object.
func (i Identity) Reference(c Claim, incarnation int) string {
	return ClusterPrefix(c.Cluster) + digest(c.Controller, c.Cluster, i.Group, i.Kind, c.Namespace, c.Name, c.UID, strconv.Itoa(incarnation))
}

// Around are the references of the claim's incarnations, latest first: up to the ones
// that a walk would look up beyond them, and back over those that stood lately.
func (i Identity) Around(c Claim) []string {
	const beyond, most = 2, 12
	var all []string
	last := max(c.Incarnation, c.Next) + beyond
	for n := last; n > 0 && n > last-most; n-- {
		all = append(all, i.Reference(c, n))
	}
	return all
}

// CreateKey is the idempotency key of a create. It has no content in it: after a
// crash the content may differ, and a key with content would be a new key.
func CreateKey(reference string, attempt int) string {
	return "create-" + digest(reference, strconv.Itoa(attempt))
}

// ChangeKey is the idempotency key of an update or a delete: of what was observed,
// of the content, and of how often it was refused.
func ChangeKey(verb, reference, observed, content string, refused int) string {
	return verb + "-" + digest(reference, verb, observed, content, strconv.Itoa(refused))
}

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// digest is 160 bits of SHA-256 over the length-prefixed parts.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		writePart(h, p)
	}
	return encoding.EncodeToString(h.Sum(nil)[:20])
}

func writePart(h hash.Hash, part string) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(part)))
	_, _ = h.Write(size[:]) // a hash never fails
	_, _ = io.WriteString(h, part)
}

// ClusterPrefix is what all references of a cluster begin with.
func ClusterPrefix(cluster string) string { return digest(cluster)[:8] + "-" }
