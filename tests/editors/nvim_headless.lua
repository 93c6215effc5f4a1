-- Runs in a headless Neovim: nvim --headless --clean -u nvim_headless.lua FILE.  Environment: PALLAS_NVIM, PALLAS_CMD.
vim.opt.runtimepath:prepend(vim.env.PALLAS_NVIM)
vim.g.pallas_lsp_cmd = vim.json.decode(vim.env.PALLAS_CMD)
vim.g.pallas_lsp_settings = { interpreter = vim.env.PALLAS_PYTHON }
if vim.env.PALLAS_OLD then -- what Neovim 0.10 lacks
  vim.lsp.enable, vim.lsp.config = nil, nil
end
vim.cmd.runtime('plugin/pallas_lsp.lua')
if vim.lsp.enable then
  vim.lsp.enable('pallas_lsp')
end

local RULE = 'preinitialized-accumulator-outside-run-state'
local said = {}
local function choose(items, _, on_choice) -- the question about trust
  on_choice(items[1], 1)
end
vim.ui.select = choose
vim.notify = function(text)
  table.insert(said, text)
end

local function wait(what, look, ms)
  local found
  assert(
    vim.wait(ms or 60000, function()
      found = look()
      return found
    end, 50),
    'timed out waiting for ' .. what .. '; said: ' .. table.concat(said, ' / ')
  )
  return found
end

local function finding()
  for _, each in ipairs(vim.diagnostic.get(0)) do
    if each.code == RULE then
      return each
    end
  end
end

local function text(each)
  return vim.api.nvim_buf_get_text(0, each.lnum, each.col, each.end_lnum, each.end_col, {})[1]
end

local tests = {
  {
    'diagnostic',
    function()
      local each = wait('the diagnostic', finding, 120000)
      assert(text(each) == 'plgpu.ACC.init(c)', text(each))
      assert(each.source == 'pallas')
    end,
  },
  {
    'status',
    function()
      wait('the status', function()
        return require('pallas_lsp').statusline() == 'Pallas 1/1'
      end)
    end,
  },
  {
    'explain',
    function()
      vim.api.nvim_win_set_cursor(0, { finding().lnum + 1, 0 })
      vim.cmd('PallasLsp explain')
      wait('the page', function()
        return vim.bo.filetype == 'markdown'
      end)
      assert(vim.api.nvim_buf_get_lines(0, 0, 1, false)[1] == '# ' .. RULE)
      assert(not vim.bo.modifiable)
      vim.cmd.close()
    end,
  },
  {
    'restart',
    function()
      local before = vim.lsp.get_clients({ name = 'pallas_lsp' })[1].id
      vim.cmd('PallasLsp restart')
      wait('another client', function()
        local client = vim.lsp.get_clients({ name = 'pallas_lsp' })[1]
        return client and client.id ~= before and client.initialized
      end)
      wait('the diagnostic', finding)
    end,
  },
  {
    'fix',
    function()
      local each = finding()
      vim.api.nvim_win_set_cursor(0, { each.lnum + 1, each.col })
      vim.lsp.buf.code_action({
        apply = true,
        filter = function(action)
          return vim.startswith(action.title, 'Use pl.run_state')
        end,
      })
      wait('the edit', function()
        return vim.fn.search([[pl\.run_state(multiply)(plgpu\.ACC\.init(c))]], 'nw') > 0
      end)
      wait('the diagnostic to vanish', function()
        return not finding()
      end)
    end,
  },
  {
    'checkhealth',
    function()
      vim.cmd('checkhealth pallas_lsp')
      local report = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
      assert(report:find('pallas%-lsp %d'), report)
      assert(report:find('a server runs for'), report)
      assert(not report:find('ERROR'), report)
    end,
  },
  {
    'help',
    function()
      vim.cmd('helptags ' .. vim.env.PALLAS_TAGS)
      vim.opt.runtimepath:prepend(vim.fs.dirname(vim.env.PALLAS_TAGS))
      vim.cmd('help :PallasLsp')
      assert(vim.api.nvim_get_current_line():find(':PallasLsp'))
    end,
  },
}

vim.api.nvim_create_autocmd('VimEnter', {
  callback = function()
    vim.schedule(function()
      local version = vim.version()
      print(('nvim %d.%d.%d\n'):format(version.major, version.minor, version.patch))
      for _, test in ipairs(tests) do
        local ok, err = xpcall(test[2], debug.traceback)
        print((ok and 'ok   ' or 'FAIL ') .. test[1] .. (ok and '' or ': ' .. tostring(err)) .. '\n')
        if not ok then
          vim.cmd('cquit 1')
        end
      end
      vim.cmd('qall!')
    end)
  end,
})
