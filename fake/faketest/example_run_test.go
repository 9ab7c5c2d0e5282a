package faketest_test

import (
	"flag"
	"testing"
)

func TestAUsersControllerBooksOnceThroughAnOutageAndALostAnswer(t *testing.T) {
	t.Parallel()
	testSeatsAreBookedOnce(t)
}

// passes runs a test within an Example, whose output is compared: what -v adds is
// left out.
func passes(test func(*testing.T)) bool {
	verbose := flag.Lookup("test.v").Value
	was := verbose.String()
	defer func() { _ = verbose.Set(was) }() // which it was
	if err := verbose.Set("false"); err != nil {
		return false
	}
	all := func(_, _ string) (bool, error) { return true, nil }
	return testing.RunTests(all, []testing.InternalTest{{Name: "TestOfTheExample", F: test}})
}
