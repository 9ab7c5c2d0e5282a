// Package table prints objects as the tables that kubectl shows: those of a CRD
// by its additionalPrinterColumns, and those of the built-in types with the cells
// that kube-apiserver has for them.
//
//	columns := table.BuiltIn(gvk)                  // or
//	columns, err := table.Custom(printerColumns)   // of a version of a CRD
//	t := table.Of(columns, objects, metav1.IncludeMetadata, now)
//
// The resourceVersion, continue and remainingItemCount of a list are the server's
// to set; so are a watch's tables, of which only the first has the definitions of
// its columns, and noHeaders. Everything here is pure, and safe for concurrent use.
package table

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"
)

// Column is one column of a table. Those of a CRD have a JSONPath.
type Column struct {
	Name, Type, Format, Description string
	JSONPath                        string
	Priority                        int32 // above 0: shown by `kubectl get -o wide` alone

	cell func(item) any // of a built-in type, instead of JSONPath
}

// item is what a cell is printed from.
type item struct {
	obj map[string]any
	now time.Time
}

var objectMeta = metav1.ObjectMeta{}.SwaggerDoc()

// name is the first column of nearly every table.
func name() Column {
	return Column{
		Name: "Name", Type: "string", Format: "name", Description: objectMeta["name"],
		cell: func(i item) any { return i.text("metadata", "name") },
	}
}

// Custom is the columns of a CRD: the name, and the additionalPrinterColumns of
// the version, as they stand in the CRD. Without any, there is the age.
func Custom(additionalPrinterColumns []any) ([]Column, error) {
	columns := []Column{name()}
	if len(additionalPrinterColumns) == 0 {
		additionalPrinterColumns = []any{map[string]any{
			"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "description": objectMeta["creationTimestamp"],
		}}
	}
	for _, c := range additionalPrinterColumns {
		given, ok := c.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("a printer column is a %T, not an object", c)
		}
		text := func(key string) string { s, _ := given[key].(string); return s }
		column := Column{
			Name: text("name"), Type: text("type"), Format: text("format"),
			Description: text("description"), JSONPath: text("jsonPath"),
		}
		if column.Description == "" {
			column.Description = "Custom resource definition column (in JSONPath format): " + column.JSONPath
		}
		switch p := given["priority"].(type) {
		case int64:
			column.Priority = int32(p)
		case float64:
			column.Priority = int32(p)
		}
		if _, err := parse(column); err != nil {
			return nil, err
		}
		columns = append(columns, column)
	}
	return columns, nil
}

// Of prints objects. What of each object goes with its row, include says: its
// metadata where it is empty. The objects are not copied.
func Of(columns []Column, objects []map[string]any, include metav1.IncludeObjectPolicy, now time.Time) *metav1.Table {
	t := &metav1.Table{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"},
		Rows:     make([]metav1.TableRow, 0, len(objects)),
	}
	cells := make([]func(item) any, len(columns))
	for i, c := range columns {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority,
		})
		if cells[i] = c.cell; c.cell == nil {
			cells[i] = byPath(c)
		}
	}
	for _, obj := range objects {
		row := metav1.TableRow{Cells: make([]any, len(cells)), Conditions: conditions(obj), Object: included(obj, include)}
		for i, cell := range cells {
			row.Cells[i] = cell(item{obj, now})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// included is what goes with the row of an object.
func included(obj map[string]any, include metav1.IncludeObjectPolicy) runtime.RawExtension {
	u := &unstructured.Unstructured{Object: obj}
	switch include {
	case metav1.IncludeNone:
		return runtime.RawExtension{}
	case metav1.IncludeObject:
		return runtime.RawExtension{Object: u}
	}
	partial := meta.AsPartialObjectMetadata(u)
	partial.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	return runtime.RawExtension{Object: partial}
}

func parse(c Column) (*jsonpath.JSONPath, error) {
	path := jsonpath.New(c.Name).AllowMissingKeys(true)
	if err := path.Parse("{" + c.JSONPath + "}"); err != nil {
		return nil, fmt.Errorf("unrecognized column definition %q", c.JSONPath)
	}
	return path, nil
}

// byPath prints what a path finds, where it is of the column's type; nil where
// it finds nothing.
func byPath(c Column) func(item) any {
	path, err := parse(c)
	if err != nil {
		return func(item) any { return nil } // it was not made by Custom
	}
	return func(i item) any {
		found, err := path.FindResults(i.obj)
		if err != nil || len(found) == 0 || len(found[0]) == 0 {
			return nil
		}
		v := found[0][0].Interface()
		if c.Type != "string" {
			return i.value(c.Type, v)
		}
		var text bytes.Buffer
		if err := path.PrintResults(&text, []reflect.Value{reflect.ValueOf(v)}); err != nil {
			return nil
		}
		return text.String()
	}
}

func (i item) value(kind string, v any) any {
	switch v := v.(type) {
	case int64:
		switch kind {
		case "integer":
			return v
		case "number":
			return float64(v)
		}
	case float64:
		switch kind {
		case "integer":
			return int64(v)
		case "number":
			return v
		}
	case bool:
		if kind == "boolean" {
			return v
		}
	case string:
		if kind == "date" {
			return i.date(v)
		}
	}
	return nil
}

// date is how long ago a time in RFC 3339 was.
func (i item) date(text string) string {
	if text == "" || text == "null" {
		return "<unknown>"
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "<invalid>"
	}
	return i.since(t)
}

func (i item) since(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(i.now.Sub(t))
}

func (i item) text(path ...string) string {
	s, _, _ := unstructured.NestedString(i.obj, path...) // what is no text is shown as none
	return s
}

// size is how many members a map has.
func (i item) size(path ...string) int64 {
	v, _, _ := unstructured.NestedFieldNoCopy(i.obj, path...) // what is no map has none
	m, _ := v.(map[string]any)
	return int64(len(m))
}
