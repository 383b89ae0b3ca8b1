// Counts the tokens of a list of tools, as a model gets it: for each tool, its name, description and schema of arguments, as
// JSON. The encoding is `o200k_base`, whose data is in the package. Other models count a few percent more or less.
//
// argv[2] is the list of tools as JSON. Prints one line of JSON: the number of tokens of each tool, in order.

import { encode } from "gpt-tokenizer/encoding/o200k_base";

const count = ({ name, description, inputSchema }) =>
  encode(JSON.stringify({ name, description, input_schema: inputSchema })).length;
console.log(JSON.stringify(JSON.parse(process.argv[2]).map(count)));
