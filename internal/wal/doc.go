// Package wal keeps records in a file so that none that was acknowledged is lost,
// and none that was not is half there, however the process ends.
//
// A file is a snapshot and what was appended to it. [Create] writes the snapshot
// beside the file that is there, forces it to the disk and puts it in its place;
// [Log.Append] adds one frame and returns once the disk has it. [Read] reads a file
// back:
//
//   - An end that is broken, as a process leaves it that is killed while it writes,
//     is left out and told as a [Tail].
//   - Whatever else is broken is a [CorruptError]. A frame that is broken is at the
//     end only where no frame that is whole comes after it: frames are forced to
//     the disk one after another, so that what is behind it was acknowledged.
//
// There is no truncation of a file that was read, and no file that grows for ever:
// who reads a log writes the next one from what it found.
package wal
