package fake

import (
	"crypto/sha256"
	"encoding/binary"
)

// hash is where everything comes from that looks random: it depends on the seed
// and on what it is for, and on nothing that happened before.
func hash(seed uint64, parts ...string) [32]byte {
	h := sha256.New()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], seed)
	h.Write(n[:])
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}

// share is a number from 0 up to 1, not included.
func share(sum [32]byte) float64 { return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53) }

// spell writes n characters of an alphabet.
func spell(sum [32]byte, alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(b)
}
