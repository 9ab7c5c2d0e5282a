package protocol

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// A reason that is missing among the own ones would be taken for a rejection by the
// outside after a restart, and its object would stay Stalled.
func TestEveryReasonIsKnownAsOwn(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		n++
		if reason, err := strconv.Unquote(literal.Value); err != nil || !OwnReason(reason) {
			t.Errorf("%s is not among the own reasons", spec.Names[0].Name)
		}
		return true
	})
	if n < 25 || n != len(ownReasons) {
		t.Errorf("%d reasons are declared, and %d own", n, len(ownReasons))
	}
}
