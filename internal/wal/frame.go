package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
)

// The file begins with a header: what it is, where the snapshot ends, a checksum.
const (
	fileMark   = "\x1etether log 1\n"
	headerSize = len(fileMark) + 8 + 4
)

// Each frame begins with a mark that no JSON has in it, and so no record by
// accident; then its number, counted from 1, the length of its body, and the
// checksum of all these and the body.
const (
	frameMark = "\x1e\x02\x1d\x03"
	frameHead = len(frameMark) + 8 + 4 + 4
)

var table = crc32.MakeTable(crc32.Castagnoli)

func header(snapshotEnd int64) []byte {
	b := binary.BigEndian.AppendUint64([]byte(fileMark), uint64(snapshotEnd)) //nolint:gosec // a place in a file
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, table))
}

// parseHeader tells where the snapshot ends.
func parseHeader(data []byte) (int64, bool) {
	if len(data) < headerSize || string(data[:len(fileMark)]) != fileMark {
		return 0, false
	}
	end := binary.BigEndian.Uint64(data[len(fileMark):])
	return int64(end), bytes.Equal(data[:headerSize], header(int64(end))) //nolint:gosec // compared with what was written
}

var errTooLong = errors.New("the records are longer than a frame can be, 4 GiB")

// appendFrame adds a frame of records to b.
func appendFrame(b []byte, number uint64, records ...[]byte) ([]byte, error) {
	begin := len(b)
	b = append(b, frameMark...)
	b = binary.BigEndian.AppendUint64(b, number)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // length and checksum, when they are known
	for _, r := range records {
		b = binary.AppendUvarint(b, uint64(len(r)))
		b = append(b, r...)
	}
	frame := b[begin:]
	length := len(frame) - frameHead
	if length > math.MaxUint32 {
		return b[:begin], errTooLong
	}
	binary.BigEndian.PutUint32(frame[len(frameMark)+8:], uint32(length)) //nolint:gosec // looked at above
	binary.BigEndian.PutUint32(frame[len(frameMark)+12:], checksum(frame))
	return b, nil
}

// checksum is of all of a frame but the checksum.
func checksum(frame []byte) uint32 {
	sum := crc32.Checksum(frame[:frameHead-4], table)
	return crc32.Update(sum, table, frame[frameHead:])
}

// parseFrame reads the frame that data begins with; false where there is none that
// is whole.
func parseFrame(data []byte) (number uint64, body []byte, ok bool) {
	if len(data) < frameHead || string(data[:len(frameMark)]) != frameMark {
		return 0, nil, false
	}
	length := uint64(binary.BigEndian.Uint32(data[len(frameMark)+8:]))
	if length > uint64(len(data)-frameHead) {
		return 0, nil, false
	}
	frame := data[:uint64(frameHead)+length]
	if binary.BigEndian.Uint32(frame[len(frameMark)+12:]) != checksum(frame) {
		return 0, nil, false
	}
	return binary.BigEndian.Uint64(frame[len(frameMark):]), frame[frameHead:], true
}

// findFrame is where the first whole frame begins, or -1.
func findFrame(data []byte) int {
	for at := 0; ; at++ {
		i := bytes.Index(data[at:], []byte(frameMark))
		if i < 0 {
			return -1
		}
		at += i
		if _, _, ok := parseFrame(data[at:]); ok {
			return at
		}
	}
}

// nextRecord cuts the first record off a body.
func nextRecord(body []byte) (record, rest []byte, ok bool) {
	length, n := binary.Uvarint(body)
	if n <= 0 || length > uint64(len(body)-n) {
		return nil, nil, false
	}
	end := n + int(length) //nolint:gosec // no longer than body
	return body[n:end:end], body[end:], true
}
