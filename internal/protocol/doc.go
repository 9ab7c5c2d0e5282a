// Package protocol decides what a managed object needs next, so that its effects
// on the outside happen exactly once. It is pure: plain values in ([View]), one
// [Step] out of [Decide]; no I/O, no clock, no log. What this process remembers of
// an object is a value too ([Memory]), whose methods return the next one.
//
// The executor does the step, adds what came of it to the View, and asks again,
// until the step is a [Finish]. Observations ([Look]) are dropped after every
// effect, every write of the claim and every newer object; the answer of an effect
// is kept as the observation that it is.
//
// First match wins. The rules, and where they stand:
//
//	 1  nothing there, or released: nothing                         whose
//	 2  deleted with orphan, or observe only: release               whose
//	 3  paused or observe only: look; invalid and unclaimed: stall  whose
//	 4  one consistent read before the first effect of a term,      effect
//	    and a guarded PATCH before anything is made                  create
//	 5  a claim that cannot be read, or is newer: stall;            whose
//	    one under a former name: moved                              claim
//	 6  someone else's claim: stall, or as none; a copy: as none    claim
//	 7  a restore under a new UID, another holder: take it;         claim
//	    another scope: stall                                        claim
//	 8  claim or finalizer touched: put back; none: birth, rebuild  claim, noClaim
//	 9  what others made is to be this object's                     adopt
//	10  an id from an answer goes to status                         View.Learns
//	11  cannot tell: back off; not own: stall                       judge, current
//	12  no guarantee and an unknown outcome: a person decides       outcome, told
//	13  being deleted: look, cancel, close, look, release           leave
//	14  rejected for this generation: rest                          rejected
//	15  a replacement under way                                     replace
//	16  fresh: create without looking; else look                    blank, current
//	17  a later incarnation is live                                 moveTo, replacedBy
//	18  pending, as wanted, differs                                 wanted, present
//	19  absent, and the key is spent                                absent
//	20  absent, never seen: create                                  absent, create
//	21  ended, failed, or seen and absent                           over, proof
//
// What each of them is for, and what was found when they were explored, stands in
// docs/exactly-once.md and docs/design/effects.md; histories, step by step, in
// testdata.
package protocol
