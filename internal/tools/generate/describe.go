package main

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// owned describes the Ticket, and each field of its spec and status, in the words of
// its Go types.
func (m *manifests) owned() (object, error) {
	definition, err := m.one("CustomResourceDefinition")
	if err != nil {
		return nil, err
	}
	version := at[[]any](definition, "spec", "versions")[0]
	schema := at[object](version, "schema", "openAPIV3Schema")
	kind := at[string](definition, "spec", "names", "kind")
	return object{
		"name": at[string](definition, "metadata", "name"), "kind": kind, "version": at[string](version, "name"),
		"displayName": kind, "description": brief(schema),
		"specDescriptors":   descriptors(at[object](schema, "properties", "spec")),
		"statusDescriptors": descriptors(at[object](schema, "properties", "status")),
	}, nil
}

// descriptors are those of the fields right below a schema, by their names.
func descriptors(schema object) (all []any) {
	fields := at[object](schema, "properties")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field := fields[name]
		d := object{"path": name, "displayName": title(name), "description": brief(field)}
		if shown := widgets(name, field); len(shown) > 0 {
			d["x-descriptors"] = shown
		}
		all = append(all, d)
	}
	return all
}

// widgets say how a console shows a field.
func widgets(name string, field any) (all []any) {
	const urn = "urn:alm:descriptor:"
	for _, choice := range at[[]any](field, "enum") {
		all = append(all, urn+"com.tectonic.ui:select:"+choice.(string))
	}
	switch {
	case len(all) > 0:
	case name == "conditions":
		all = append(all, urn+"io.kubernetes.conditions")
	case at[string](field, "type") == "string":
		all = append(all, urn+"com.tectonic.ui:text")
	}
	return all
}

// brief is a description's text on one line.
func brief(schema any) string {
	return strings.Join(strings.Fields(at[string](schema, "description")), " ")
}

// title turns departureDate into Departure date, and bookingID into Booking ID.
func title(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		switch upper := unicode.IsUpper(r); {
		case i == 0:
			b.WriteRune(unicode.ToUpper(r))
		case upper && unicode.IsLower(letters[i-1]):
			b.WriteRune(' ')
			if i+1 < len(letters) && unicode.IsLower(letters[i+1]) {
				r = unicode.ToLower(r)
			}
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
