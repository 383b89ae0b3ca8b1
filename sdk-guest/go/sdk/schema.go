//go:build !wasip1 || belljar_tools || belljar_prompts

package belljar

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// maxDepth bounds the nesting of a type. Without it, a type that contains itself would never end.
const maxDepth = 32

// field is one field of a struct, as encoding/json sees it.
type field struct {
	name     string
	index    []int
	of       reflect.Type // without its pointer
	tag      reflect.StructTag
	required bool
	quoted   bool // the option string of its tag
}

// schemaOf is the JSON Schema of a type, which is a struct or a map.
func schemaOf[T any](what string) string {
	of := plain(reflect.TypeFor[T]())
	if of.Kind() != reflect.Struct && of.Kind() != reflect.Map {
		misuse("%s are of the type %v: use a struct", what, of)
	}
	text, err := toJSON(schema(of, what, 0))
	if err != nil {
		misuse("%s: %v", what, err)
	}
	return text
}

// plain is the type behind pointers.
func plain(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of
}

// members is a JSON object whose members keep their order.
type members []member

type member struct {
	key   string
	value any
}

func (m members) MarshalJSON() ([]byte, error) {
	var text strings.Builder
	text.WriteByte('{')
	for i, member := range m {
		key, err := toJSON(member.key)
		if err != nil {
			return nil, err
		}
		value, err := toJSON(member.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(key + ":" + value)
	}
	text.WriteByte('}')
	return []byte(text.String()), nil
}

func schema(of reflect.Type, what string, depth int) members {
	if depth > maxDepth {
		misuse("%s: the type %v is too deep; write the schema as text", what, of)
	}
	of = plain(of)
	text := members{{"type", "string"}}
	switch {
	case of == reflect.TypeFor[time.Time]():
		return append(text, member{"format", "date-time"})
	case reflect.PointerTo(of).Implements(reflect.TypeFor[json.Marshaler]()):
		return members{} // such as json.RawMessage: any value
	case reflect.PointerTo(of).Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return text
	}
	switch of.Kind() {
	case reflect.String:
		return text
	case reflect.Bool:
		return members{{"type", "boolean"}}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return members{{"type", "integer"}}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return members{{"type", "integer"}, {"minimum", 0}}
	case reflect.Float32, reflect.Float64:
		return members{{"type", "number"}}
	case reflect.Interface:
		return members{}
	case reflect.Slice, reflect.Array:
		if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8 {
			return append(text, member{"contentEncoding", "base64"})
		}
		return members{{"type", "array"}, {"items", schema(of.Elem(), what, depth+1)}}
	case reflect.Map:
		if of.Key().Kind() == reflect.String {
			return members{{"type", "object"}, {"additionalProperties", schema(of.Elem(), what, depth+1)}}
		}
	case reflect.Struct:
		return object(of, what, depth)
	}
	misuse("%s: a value of the type %v is not JSON", what, of)
	return nil
}

func object(of reflect.Type, what string, depth int) members {
	properties, required := members{}, []string{}
	for _, field := range fieldsOf(of, what) {
		property := members{{"type", "string"}}
		if !field.quoted {
			property = schema(field.of, what, depth+1)
		}
		properties = append(properties, member{field.name, constrained(property, field, what)})
		if field.required {
			required = append(required, field.name)
		}
	}
	made := members{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		made = append(made, member{"required", required})
	}
	return made
}

// constrained adds the tags of a field to its schema.
func constrained(property members, field field, what string) members {
	for _, key := range []string{"minimum", "maximum"} {
		if text, ok := field.tag.Lookup(key); ok {
			if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
				misuse("%s: the %s \"%s\" of \"%s\" is not a number", what, key, text, field.name)
			}
			property = property.with(key, json.RawMessage(text))
		}
	}
	if text, ok := field.tag.Lookup("enum"); ok {
		property = property.with("enum", choices(text, field, what))
	}
	for _, key := range []string{"format", "title", "description"} {
		if text, ok := field.tag.Lookup(key); ok {
			property = property.with(key, text)
		}
	}
	return property
}

// choices are the values of the tag enum, of the type of the field.
func choices(text string, field field, what string) []any {
	var values []any
	for choice := range strings.SplitSeq(text, ",") {
		if field.of.Kind() == reflect.String {
			values = append(values, choice)
			continue
		}
		if !json.Valid([]byte(choice)) {
			misuse("%s: the choice \"%s\" of \"%s\" is not JSON", what, choice, field.name)
		}
		values = append(values, json.RawMessage(choice))
	}
	return values
}

// with sets a member.
func (m members) with(key string, value any) members {
	for i := range m {
		if m[i].key == key {
			m[i].value = value
			return m
		}
	}
	return append(m, member{key, value})
}

// fieldsOf lists the fields of a struct. Fields of an embedded struct without a name of its own count as its own.
func fieldsOf(of reflect.Type, what string) []field {
	if of.Kind() != reflect.Struct {
		misuse("%s are of the type %v: use a struct", what, of)
	}
	var fields []field
	for at := range of.NumField() {
		from := of.Field(at)
		name, options, _ := strings.Cut(from.Tag.Get("json"), ",")
		if from.Anonymous && name == "" && from.Type.Kind() == reflect.Struct {
			for _, inner := range fieldsOf(from.Type, what) {
				inner.index = append([]int{at}, inner.index...)
				fields = append(fields, inner)
			}
			continue
		}
		if !from.IsExported() || name == "-" && options == "" {
			continue
		}
		if name == "" {
			name = from.Name
		}
		has := func(option string) bool { return strings.Contains(","+options+",", ","+option+",") }
		optional := from.Type.Kind() == reflect.Pointer || has("omitempty") || has("omitzero")
		fields = append(fields, field{name, []int{at}, plain(from.Type), from.Tag, !optional, has("string")})
	}
	return fields
}
