/* The bounded part of JSON Schema: what it takes, what it refuses by name, and that everything is bounded. */
#include "flow/json_schema.h"

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *parse(const char *json)
{
    json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);
    if (value == NULL)
        hc_test_fail(__FILE__, __LINE__, "not JSON: %s", json);
    return value;
}

static void refused(const char *schema, const char *message)
{
    char room[256] = "";
    json_t *value = parse(schema);
    const char *wrong = hc_schema_check(value, room);
    if (wrong == NULL || strstr(wrong, message) == NULL)
        hc_test_fail(__FILE__, __LINE__, "%s: '%s' lacks '%s'", schema, wrong != NULL ? wrong : "(taken)",
                     message);
    json_decref(value);
}

static enum hc_schema_outcome outcome(const char *schema, const char *document, char reason[256])
{
    char room[256] = "";
    json_t *s = parse(schema), *d = parse(document);
    const char *wrong = hc_schema_check(s, room);
    if (wrong != NULL)
        hc_test_fail(__FILE__, __LINE__, "%s: %s", schema, wrong);
    enum hc_schema_outcome result = hc_schema_judge(s, d, reason);
    json_decref(s);
    json_decref(d);
    return result;
}

static void fits(const char *schema, const char *document)
{
    char reason[256];
    if (outcome(schema, document, reason) != HC_SCHEMA_HOLDS)
        hc_test_fail(__FILE__, __LINE__, "%s against %s: %s", document, schema, reason);
}

static void differs(const char *schema, const char *document, const char *where)
{
    char reason[256];
    if (outcome(schema, document, reason) != HC_SCHEMA_DIFFERS || strstr(reason, where) == NULL)
        hc_test_fail(__FILE__, __LINE__, "%s against %s: '%s' lacks '%s'", document, schema, reason, where);
}

HC_TEST(wrong_schemas_are_named)
{
    refused("1", "an object, true or false");
    refused("{\"typ\":\"string\"}", "typ: unknown keyword");
    refused("{\"properties\":{\"a\":{\"format\":\"date\"}}}", "format: unknown keyword");
    refused("{\"$ref\":\"https://example.org/schema\"}", "nothing outside of the schema is read");
    refused("{\"$ref\":\"other.json#/$defs/a\"}", "nothing outside of the schema is read");
    refused("{\"$ref\":\"#/properties/a\",\"properties\":{\"a\":true}}", "#/$defs/NAME");
    refused("{\"$ref\":\"#/$defs/missing\"}", "that is there");
    refused("{\"$id\":\"x\"}", "$id: unknown keyword");
    refused("{\"type\":\"text\"}", "type: null, boolean");
    refused("{\"type\":[]}", "type: ");
    refused("{\"enum\":[]}", "enum: a list");
    refused("{\"minimum\":\"x\"}", "minimum: a number");
    refused("{\"multipleOf\":0}", "multipleOf");
    refused("{\"minItems\":-1}", "minItems");
    refused("{\"minItems\":1.5}", "minItems");
    refused("{\"required\":[1]}", "required: a list of texts");
    refused("{\"properties\":[]}", "properties: an object of schemas");
    refused("{\"anyOf\":{}}", "anyOf: a list of schemas");
    refused("{\"not\":[]}", "an object, true or false");
    refused("{\"pattern\":\"(\"}", "pattern:");
    refused("{\"pattern\":\"(a{500}){500}\"}", "repetitions");
    char deep[1000] = "";
    for (int i = 0; i < 70; i++)
        strcat(deep, "{\"not\":");
    strcat(deep, "true");
    for (int i = 0; i < 70; i++)
        strcat(deep, "}");
    refused(deep, "64 schemas");
}

HC_TEST(every_keyword)
{
    fits("true", "1");
    differs("false", "1", "the document");
    fits("{\"type\":\"integer\"}", "1.0");
    differs("{\"type\":\"integer\"}", "1.5", "type");
    differs("{\"type\":\"integer\"}", "true", "type");
    fits("{\"type\":[\"null\",\"string\"]}", "null");
    fits("{\"enum\":[1,\"a\",[1,{\"b\":2}]]}", "[1.0,{\"b\":2}]");
    differs("{\"enum\":[1,\"a\"]}", "\"b\"", "enum");
    fits("{\"const\":{\"a\":1,\"b\":[]}}", "{\"b\":[],\"a\":1.0}");
    differs("{\"const\":0}", "false", "const");
    fits("{\"minimum\":1,\"maximum\":\"2.5\"}", "2.5");
    differs("{\"maximum\":\"2.5\"}", "2.6", "maximum");
    differs("{\"exclusiveMinimum\":1}", "1", "exclusiveMinimum");
    differs("{\"exclusiveMaximum\":1}", "1", "exclusiveMaximum");
    fits("{\"multipleOf\":0.1}", "0.3");
    differs("{\"multipleOf\":2}", "3", "multipleOf");
    fits("{\"minimum\":5}", "\"text\"");
    fits("{\"minLength\":2,\"maxLength\":2}", "\"\\u00e4\\u00e4\"");
    differs("{\"minLength\":3}", "\"\\u00e4\\u00e4\"", "minLength");
    differs("{\"maxLength\":1}", "\"ab\"", "maxLength");
    fits("{\"pattern\":\"^a+$\"}", "\"aaa\"");
    differs("{\"pattern\":\"^a+$\"}", "\"aab\"", "pattern");
    fits("{\"prefixItems\":[{\"type\":\"string\"}],\"items\":{\"type\":\"number\"}}", "[\"a\",1,2]");
    differs("{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", "[\"a\",1]", "/1");
    differs("{\"items\":{\"type\":\"number\"}}", "[1,\"b\"]", "/1: type");
    differs("{\"minItems\":1}", "[]", "minItems");
    differs("{\"maxItems\":1}", "[1,2]", "maxItems");
    fits("{\"uniqueItems\":true}", "[1,\"1\",true]");
    differs("{\"uniqueItems\":true}", "[{\"a\":1},{\"a\":1.0}]", "uniqueItems");
    differs("{\"contains\":{\"const\":3}}", "[1,2]", "contains");
    fits("{\"contains\":{\"const\":3}}", "[1,3]");
    differs("{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":1}", "/a: type");
    differs("{\"required\":[\"a\",\"b\"]}", "{\"a\":1}", "lacks: b");
    differs("{\"properties\":{\"a\":true},\"additionalProperties\":false}", "{\"a\":1,\"b\":2}",
            "/b: must not");
    fits("{\"additionalProperties\":{\"type\":\"number\"}}", "{\"a\":1}");
    differs("{\"propertyNames\":{\"maxLength\":1}}", "{\"ab\":1}", "propertyNames: ab");
    differs("{\"minProperties\":1}", "{}", "minProperties");
    differs("{\"maxProperties\":0}", "{\"a\":1}", "maxProperties");
    differs("{\"allOf\":[true,{\"type\":\"string\"}]}", "1", "type");
    fits("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"number\"}]}", "1");
    differs("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "1", "anyOf");
    differs("{\"oneOf\":[{\"type\":\"number\"},{\"type\":\"integer\"}]}", "1", "oneOf");
    differs("{\"not\":{\"type\":\"number\"}}", "1", "not");
    fits("{\"$defs\":{\"tree\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/tree\"}}},\"$ref\":\"#/"
         "$defs/tree\"}",
         "[[],[[]]]");
    differs("{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", "[[],[1]]", "/1/0: type");
}

HC_TEST(nothing_is_unbounded)
{
    char reason[256];
    static const char loop[] = "{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/a\"}},\"$ref\":\"#/$defs/a\"}";
    HC_ASSERT_EQ_INT(outcome(loop, "1", reason), HC_SCHEMA_UNSURE);
    static const char twice[] =
        "{\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"}]}},"
        "\"$ref\":\"#/$defs/a\"}";
    HC_ASSERT_EQ_INT(outcome(twice, "1", reason), HC_SCHEMA_UNSURE);
    static const char slow[] = "{\"items\":{\"pattern\":\"(a|b)*a(a|b){60}c\"}}";
    uint64_t seed = 5;
    char *document = malloc(40000);
    HC_ASSERT(document != NULL);
    (void)snprintf(document, 40000, "[\"%030000d\"]", 0);
    for (char *at = document + 2; *at == '0'; at++)
        *at = "ab"[hc_test_random(&seed) % 2];
    HC_ASSERT_EQ_INT(outcome(slow, document, reason), HC_SCHEMA_UNSURE);
    free(document);
    json_t *many = json_array(), *schema = parse("{\"uniqueItems\":true}");
    for (int i = 0; i < 3000; i++)
        (void)json_array_append_new(many, json_integer(i));
    HC_ASSERT_EQ_INT(hc_schema_judge(schema, many, reason), HC_SCHEMA_UNSURE);
    json_decref(many);
    json_decref(schema);
}

/* Any schema that is taken judges any document without surprise, and in the same way twice. */
static json_t *any_value(uint64_t *seed, int depth)
{
    static const char *const texts[] = {"a",     "#",      "#/$defs/a", "integer", "string",
                                        "array", "object", "^a",        ""};
    switch (hc_test_random(seed) % (depth > 0 ? 8 : 6)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(hc_test_random(seed) % 2);
    case 2:
        return json_integer((json_int_t)(hc_test_random(seed) % 5) - 1);
    case 3:
        return json_real((double)(hc_test_random(seed) % 9) / 2);
    case 4:
    case 5:
        return json_string(texts[hc_test_random(seed) % 9]);
    case 6: {
        json_t *list = json_array();
        for (uint64_t n = hc_test_random(seed) % 4; n > 0; n--)
            (void)json_array_append_new(list, any_value(seed, depth - 1));
        return list;
    }
    default: {
        json_t *object = json_object();
        size_t count = 0;
        while (hc_schema_keyword(count) != NULL)
            count++;
        for (uint64_t n = hc_test_random(seed) % 4; n > 0; n--) {
            const char *name = hc_schema_keyword(hc_test_random(seed) % count);
            if (strcmp(name, "pattern") != 0)
                (void)json_object_set_new(object, hc_test_random(seed) % 4 == 0 ? "a" : name,
                                          any_value(seed, depth - 1));
        }
        return object;
    }
    }
}

HC_TEST(any_schema_and_any_document, .timeout_s = 60)
{
    uint64_t seed = 7;
    unsigned taken = 0;
    for (int round = 0; round < 30000; round++) {
        json_t *schema = any_value(&seed, 4), *document = any_value(&seed, 4);
        char room[256], first[256], second[256];
        if (hc_schema_check(schema, room) == NULL) {
            taken++;
            enum hc_schema_outcome got = hc_schema_judge(schema, document, first);
            HC_ASSERT_EQ_INT(hc_schema_judge(schema, document, second), got);
            HC_ASSERT_STREQ(first, second);
            HC_ASSERT(got == HC_SCHEMA_HOLDS || first[0] != '\0');
        }
        json_decref(schema);
        json_decref(document);
    }
    HC_ASSERT(taken > 1000);
}
