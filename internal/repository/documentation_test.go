package repository

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// undocumented finds packages without a doc comment, and exported names
// without one: types, functions, methods of exported types, constants and
// variables everywhere; in packages that users import also the methods of an
// interface, and the fields of options, whose defaults and units no name tells.
// Test files, generated files and testdata are left out.
func undocumented(tree fs.FS) (wrong []string, err error) {
	documented := map[string]bool{} // folders with Go files
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if base := d.Name(); name != "." && (base == "testdata" || base == "bin" || base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
			return nil
		case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := path.Dir(name)
		documented[folder] = documented[folder] || said(file.Doc)
		if !ast.IsGenerated(file) {
			c := checker{folder: folder, public: public(folder, file.Name.Name)}
			c.file(file)
			wrong = append(wrong, c.wrong...)
		}
		return nil
	})
	for folder, ok := range documented {
		if !ok {
			wrong = append(wrong, folder+": the package has no doc comment")
		}
	}
	slices.Sort(wrong)
	return wrong, err
}

// public says whether users can import a package.
func public(folder, name string) bool {
	return name != "main" && !slices.Contains(strings.Split(folder, "/"), "internal")
}

// said says whether any of the comments has words.
func said(comments ...*ast.CommentGroup) bool {
	return slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return strings.TrimSpace(c.Text()) != "" })
}

// checker looks at one file.
type checker struct {
	folder string
	public bool
	wrong  []string
}

func (c *checker) want(name string, comments ...*ast.CommentGroup) {
	if !said(comments...) {
		c.wrong = append(c.wrong, fmt.Sprintf("%s: %s is not documented", c.folder, name))
	}
}

func (c *checker) file(f *ast.File) {
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			receiver := ""
			if d.Recv != nil {
				receiver = typeName(d.Recv.List[0].Type)
				if !ast.IsExported(receiver) {
					continue
				}
				receiver += "."
			}
			if d.Name.IsExported() {
				c.want(receiver+d.Name.Name, d.Doc)
			}
		case *ast.GenDecl:
			c.general(d)
		}
	}
}

// general looks at types, constants and variables. A comment above a group
// speaks for all of the group, but for types.
func (c *checker) general(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() {
					c.want(name.Name, d.Doc, s.Doc, s.Comment)
				}
			}
		case *ast.TypeSpec:
			if !s.Name.IsExported() {
				continue
			}
			group := d.Doc
			if d.Lparen.IsValid() {
				group = nil
			}
			c.want(s.Name.Name, group, s.Doc, s.Comment)
			if c.public {
				c.members(s.Name.Name, s.Type)
			}
		}
	}
}

// members looks at the fields of options and at an interface's methods. What
// is embedded is documented where it is declared.
func (c *checker) members(name string, t ast.Expr) {
	var list *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		if !strings.HasSuffix(name, "Options") {
			return
		}
		list = t.Fields
	case *ast.InterfaceType:
		if t.Methods.NumFields() == 1 {
			return // the type's comment speaks of it
		}
		list = t.Methods
	default:
		return
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			if n.IsExported() {
				c.want(name+"."+n.Name, f.Doc, f.Comment)
			}
		}
	}
}

// typeName is the name of a receiver's type, without pointer and parameters.
func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.IndexExpr:
		return typeName(t.X)
	case *ast.IndexListExpr:
		return typeName(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

func TestEverythingExportedIsDocumented(t *testing.T) {
	t.Parallel()
	wrong, err := undocumented(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

func TestWhatIsNotDocumentedIsFound(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"doc.go": {Data: []byte("// Package a is one.\npackage a\n")},
		"a.go": {Data: []byte(`package a

type Bare struct{}

// Good is one.
type Good struct{ Field int }

// GoodOptions is one.
type GoodOptions[T any] struct {
	Field int
	// Other is one.
	Other int
	A, B int // A and B are two.
	hidden int
	Bare
}

func (*GoodOptions[T]) Method() {}
func (g *GoodOptions[T]) hidden() {}
func (hidden) Method() {}

type hidden struct{ Field int }

// Face is one.
type Face interface {
	Do()
	// Undo is one.
	Undo()
}

// Doer is one, which does.
type Doer interface { Do() }

// These are two.
const (
	One = 1
	Two = 2
)

var Variable int
var Other int // Other is one.

// These are types.
type (
	Grouped int
)

func Function() {}

//go:noinline
func Directive() {}
`)},
		"a_test.go":               {Data: []byte("package a\n\nfunc Helper() {}\n")},
		"b/b.go":                  {Data: []byte("package b\n")},
		"internal/c/c.go":         {Data: []byte("// Package c is one.\npackage c\n\n// T is one.\ntype T struct{ Field int }\n")},
		"internal/c/zz.go":        {Data: []byte("// Code generated by hand. DO NOT EDIT.\n\npackage c\n\nfunc Made() {}\n")},
		"testdata/d.go":           {Data: []byte("package d\n")},
		".hidden/e.go":            {Data: []byte("package e\n")},
		"internal/nested/main.go": {Data: []byte("package main\n")},
	}
	got, err := undocumented(tree)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		".: Bare is not documented",
		".: Directive is not documented",
		".: Face.Do is not documented",
		".: Function is not documented",
		".: GoodOptions.Field is not documented",
		".: GoodOptions.Method is not documented",
		".: Grouped is not documented",
		".: Variable is not documented",
		"b: the package has no doc comment",
		"internal/nested: the package has no doc comment",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
