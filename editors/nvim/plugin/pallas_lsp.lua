-- Loaded at start: the command, and the server where there is no vim.lsp.enable.
if vim.g.loaded_pallas_lsp then
  return
end
vim.g.loaded_pallas_lsp = true
require('pallas_lsp').setup()
