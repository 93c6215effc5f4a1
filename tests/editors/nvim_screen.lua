-- A user's init.lua, as :help pallas-lsp-setup has it.
vim.opt.runtimepath:prepend(vim.env.PALLAS_NVIM)
vim.g.pallas_lsp_cmd = vim.json.decode(vim.env.PALLAS_CMD)
vim.g.pallas_lsp_settings = { interpreter = vim.env.PALLAS_PYTHON }
vim.lsp.enable('pallas_lsp')
vim.diagnostic.config({ virtual_text = true, signs = true })
vim.opt.number = true
