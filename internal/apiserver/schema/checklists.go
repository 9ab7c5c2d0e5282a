package schema

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// lists checks what a schema says of a list's kind and keys.
func (c *checker) lists(s map[string]any, path *field.Path) {
	listType, given := s["x-kubernetes-list-type"].(string)
	keys := texts(s["x-kubernetes-list-map-keys"])
	if len(keys) > 0 && listType != "map" {
		const detail = "must be map if x-kubernetes-list-map-keys is non-empty"
		if !given {
			c.add(field.Required(path.Child("x-kubernetes-list-type"), detail))
		} else {
			c.add(field.Invalid(path.Child("x-kubernetes-list-type"), listType, detail))
		}
	}
	items := object(s["items"])
	switch {
	case listType == "set" && s["type"] == "array" && items != nil:
		c.setItems(items, path.Child("items"))
	case listType == "map":
		c.mapItems(items, keys, path)
	}
	if items != nil && items["nullable"] == true && (listType == "set" || listType == "map") {
		c.add(field.Forbidden(path.Child("items").Child("nullable"), "cannot be nullable when x-kubernetes-list-type is "+listType))
	}
	if items != nil && listType == "map" {
		c.mapKeys(items, keys, path.Child("items").Child("properties"))
	}
}

// setItems checks that the items of a set are each one thing.
func (c *checker) setItems(items map[string]any, path *field.Path) {
	const detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
	switch items["type"] {
	case "array":
		if t, ok := items["x-kubernetes-list-type"].(string); ok && t != "atomic" {
			c.add(field.Invalid(path.Child("x-kubernetes-list-type"), t, detail))
		}
	case "object":
		if items["x-kubernetes-map-type"] != "atomic" {
			// The real server shows the list type here, and so null.
			c.add(field.Invalid(path.Child("x-kubernetes-map-type"), items["x-kubernetes-list-type"], detail))
		}
	}
}

func (c *checker) mapItems(items map[string]any, keys []string, path *field.Path) {
	if len(keys) == 0 {
		c.add(field.Required(path.Child("x-kubernetes-list-map-keys"), "must not be empty if x-kubernetes-list-type is map"))
	}
	if items == nil {
		c.add(field.Required(path.Child("items"), "must have a schema if x-kubernetes-list-type is map"))
		return
	}
	if items["type"] != "object" {
		kind, _ := items["type"].(string)
		c.add(field.Invalid(path.Child("items").Child("type"), kind, "must be object if parent array's x-kubernetes-list-type is map"))
		return
	}
	properties := schemas(items["properties"])
	for i, key := range keys {
		if slices.Contains(keys[:i], key) {
			c.add(field.Invalid(path.Child("x-kubernetes-list-map-keys"), keys, "must not contain duplicate entries"))
		}
		p, ok := properties[key]
		if !ok {
			c.add(field.Invalid(path.Child("x-kubernetes-list-map-keys"), keys, "entries must all be names of item properties"))
			continue
		}
		if p["type"] == "array" || p["type"] == "object" {
			// The real server shows the type of the items here.
			c.add(field.Invalid(path.Child("items").Child("properties").Key(key).Child("type"), "object",
				"must be a scalar type if parent array's x-kubernetes-list-type is map"))
		}
	}
}

// mapKeys checks that each item has all of its keys.
func (c *checker) mapKeys(items map[string]any, keys []string, path *field.Path) {
	required, properties := texts(items["required"]), schemas(items["properties"])
	for _, key := range keys {
		p, ok := properties[key]
		if !ok {
			continue
		}
		property := path.Key(key)
		if p["default"] == nil && !slices.Contains(required, key) {
			c.add(field.Required(property.Child("default"), "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"))
		}
		if p["nullable"] == true {
			c.add(field.Forbidden(property.Child("nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
		}
	}
}

func texts(v any) (found []string) {
	for _, v := range list(v) {
		if s, ok := v.(string); ok {
			found = append(found, s)
		}
	}
	return found
}
