package protocol

// settings are what is explored: what the outside offers, with and without a fence;
// each order of replacing; calls that land late. The acts of people come in groups,
// since all of them at once are more than needed to find what two of them break.
func settings() []setting {
	wish := []act{actDate, actPassenger, actDelete, actSellOut, actRestock, actReconcile}
	hands := []act{actPassenger, actDelete, actWipe, actStatusForeign, actUnclaim, actUnfinalize, actClaimOn, actClaimBack, actClaimTry}
	world := []act{actPassenger, actDelete, actOrphan, actCancel, actVanish, actRestore, actBackup, actRollback, actNew}
	person := []act{actPassenger, actDelete, actHappened, actDidNot, actCancel, actAdopt}
	recreate := Policy{Recreate: true}
	first := Policy{DeleteFirst: true}
	unique := Outside{Guarantee: UniqueReference}
	fenced := Outside{Guarantee: UniqueReference, Fence: true}
	liveFenced := Outside{Guarantee: UniqueLiveReference, Fence: true}
	live := Outside{Guarantee: UniqueLiveReference}
	keys := Outside{Guarantee: IdempotencyKeys}
	keysFenced := Outside{Guarantee: IdempotencyKeys, Fence: true}
	shortKeys := Outside{Guarantee: IdempotencyKeys, KeyLifetime: 2 * settle}
	lookup := Outside{Guarantee: LookupOnly}
	lookupFenced := Outside{Guarantee: LookupOnly, Fence: true}
	rebind := Outside{Guarantee: UniqueReference, Fence: true, Rebind: true, Adopt: true}
	rebindLookup := Outside{Guarantee: LookupOnly, Rebind: true, Adopt: true}
	var all []setting
	for _, g := range []struct {
		name string
		acts []act
	}{{"wishes", wish}, {"hands", hands}, {"world", world}} {
		for _, s := range []setting{
			{name: "UniqueReference, fenced, any time", deepIn: "wishes", outside: fenced, anytime: true, lag: true},
			{name: "UniqueReference, any time", deepIn: "hands", outside: unique, anytime: true, lag: true},
			{name: "UniqueReference", deepIn: "world", outside: unique, lag: true},
			{name: "UniqueReference, fenced, recreate", deepIn: "world", outside: fenced, policy: recreate, anytime: true, lag: true},
			{name: "UniqueReference, recreate", deepIn: "world", outside: unique, policy: recreate, lag: true},
			{name: "UniqueReference, fenced, delete first", deepIn: "wishes", outside: fenced, policy: first, anytime: true, lag: true},
			{name: "UniqueLiveReference, fenced, any time", deepIn: "hands", outside: liveFenced, anytime: true, lag: true},
			{name: "UniqueLiveReference", deepIn: "wishes", outside: live, lag: true},
			{name: "UniqueLiveReference, recreate", deepIn: "world", outside: live, policy: recreate, lag: true},
			{name: "IdempotencyKeys, fenced, any time", deepIn: "wishes", outside: keysFenced, anytime: true, lag: true},
			{name: "IdempotencyKeys", deepIn: "hands", outside: keys, lag: true},
			{name: "IdempotencyKeys of two windows", outside: shortKeys, lag: true},
			{name: "LookupOnly", deepIn: "world", outside: lookup, lag: true},
			{name: "LookupOnly, delete first", deepIn: "hands", outside: lookup, policy: first, lag: true},
			{name: "LookupOnly, recreate", deepIn: "world", outside: lookup, policy: recreate, lag: true},
			{name: "UniqueReference, delete first", outside: unique, policy: first, lag: true},
			{name: "UniqueLiveReference, delete first", outside: live, policy: first, lag: true},
			{name: "UniqueLiveReference, fenced, delete first", outside: liveFenced, policy: first, anytime: true, lag: true},
			{name: "IdempotencyKeys, delete first", outside: keys, policy: first, lag: true},
			{name: "IdempotencyKeys, fenced, delete first", outside: keysFenced, policy: first, anytime: true, lag: true},
			{name: "LookupOnly, fenced, any time", outside: lookupFenced, anytime: true, lag: true},
			{name: "UniqueReference, fenced, slow", deepIn: "wishes", outside: fenced, anytime: true, lag: true, slow: true},
			{name: "LookupOnly, slow", deepIn: "hands", outside: lookup, lag: true, slow: true},
		} {
			s.deep = s.deepIn == g.name
			s.name, s.acts = s.name+": "+g.name, g.acts
			all = append(all, s)
		}
	}
	all = append(all,
		setting{name: "IdempotencyKeys, fenced, any time, no rejection kept: sold out", outside: keysFenced, anytime: true, lag: true, forgets: true, acts: []act{actSellOut, actDate, actRestock, actDelete}, needs: 2},
		setting{name: "UniqueReference, an old list: two wishes", outside: unique, lag: true, stale: true, acts: []act{actPassenger}, needs: 2},
		setting{name: "LookupOnly, an old list: two wishes", outside: lookup, lag: true, stale: true, acts: []act{actPassenger}, needs: 2},
		setting{name: "UniqueReference, fenced: an older etcd", outside: fenced, lag: true, acts: []act{actBackup, actRollback, actPassenger}, needs: 3},
		setting{name: "LookupOnly: an older etcd", outside: lookup, lag: true, acts: []act{actBackup, actRollback, actPassenger}, needs: 3},
		setting{name: "UniqueReference, blind", outside: unique, blind: true, lag: true, acts: wish},
		setting{name: "LookupOnly, recreate, blind", outside: lookup, policy: recreate, blind: true, lag: true, acts: []act{actDelete, actWipe, actCancel}},
		setting{name: "UniqueReference: two wishes", outside: unique, lag: true, acts: []act{actPassenger, actDelete}, needs: 2},
		setting{name: "None: a person", deep: true, outside: Outside{Guarantee: None}, acts: person},
		setting{name: "None, delete first: a person", deep: true, outside: Outside{Guarantee: None}, policy: first, acts: person},
		setting{name: "rebind, fenced: a person", outside: rebind, anytime: true, lag: true, acts: person},
		setting{name: "rebind, LookupOnly: a person", outside: rebindLookup, lag: true, acts: person},
		setting{name: "rebind, retain", outside: rebind, policy: Policy{Retain: true}, anytime: true, lag: true, acts: wish},
		setting{name: "retain", deep: true, outside: lookup, policy: Policy{Retain: true}, lag: true, acts: wish},
		setting{name: "a copy", outside: fenced, anytime: true, lag: true, copied: true, acts: world},
		setting{name: "UniqueReference, LookupOnly before: an upgrade", outside: unique, before: LookupOnly, lag: true, acts: []act{actUpgrade, actPassenger, actDelete}, needs: 2},
		setting{name: "UniqueReference, fenced, LookupOnly before: an upgrade", outside: fenced, before: LookupOnly, lag: true, acts: []act{actUpgrade, actPassenger, actDelete}, needs: 2},
		setting{name: "UniqueReference, slow: the passenger", deep: true, outside: unique, slow: true, acts: []act{actPassenger}},
		setting{name: "UniqueReference: another's id", outside: unique, acts: []act{actStatusForeign}},
	)
	for i := range all {
		all[i].quick = quick[all[i].name]
	}
	return all
}

// quick are explored in each test run.
var quick = map[string]bool{
	"UniqueReference, fenced, any time: wishes": true, "UniqueReference: hands": true, "UniqueLiveReference: world": true,
	"IdempotencyKeys: wishes": true, "LookupOnly: hands": true, "LookupOnly, recreate: world": true,
	"LookupOnly, delete first: wishes": true, "UniqueReference, slow: the passenger": true, "None: a person": true,
	"UniqueReference, blind": true, "LookupOnly, recreate, blind": true, "retain": true,
}

// depth is how many faults and acts are explored, where so many are asked for. Two
// lies about an absence in a row are more than is promised.
func (s setting) depth(faults, acts uint8) (uint8, uint8) {
	if acts = max(acts, s.needs); *depthDeep && s.deep {
		acts = max(acts, 2)
	}
	if s.blind || s.needs > 2 {
		faults = min(faults, 1)
	}
	return faults, acts
}
