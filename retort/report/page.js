// Draws every figure from the JSON beside its canvas; repaints when the colour scheme changes or the page is printed.
(() => {
  'use strict';
  if (!window.Chart) return;
  const root = document.documentElement;
  const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const palette = (index) => color('--c' + (index % 8));
  const dashes = [[], [7, 3], [2, 2], [10, 3, 2, 3]];
  // Shifted by one after each turn of the colours, so that no two of 32 lines look alike.
  const dash = (index) => dashes[(index + Math.floor(index / 8)) % dashes.length];
  const marks = ['circle', 'rect', 'triangle', 'rectRot'];

  // 20k, 1.5M: the same spelling as in recipes.
  const tokens = (value) => {
    for (const [size, unit] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
      if (Math.abs(value) >= size) return +(value / size).toPrecision(3) + unit;
    return String(value);
  };
  const short = (value) => (value === 0 ? '0' : +value.toPrecision(4));

  const lineStyle = (series, i) => ({
    label: series.name, data: series.data, borderColor: palette(series.color), backgroundColor: palette(series.color),
    borderWidth: 1.8, borderDash: dash(series.dash), tension: 0,
    // Two measurements are no course.
    showLine: !series.marks || series.data.length > 2,
    pointRadius: series.marks || series.data.length === 1 ? 2.6 : 0, pointStyle: marks[i % marks.length], pointHitRadius: 8, clip: 6,
  });
  const barStyle = (series) => ({
    label: series.name, data: series.data, backgroundColor: palette(series.color), borderWidth: 0,
    categoryPercentage: 0.78, barPercentage: 0.92, maxBarThickness: 56,
  });

  const axis = (title, more) => ({
    title: { display: true, text: title, color: color('--soft') },
    ticks: { color: color('--soft'), maxRotation: 60 },
    grid: { color: color('--line'), borderColor: color('--soft'), lineWidth: 0.7, tickLength: 4 }, ...more,
  });

  // Chart.js leaves the pattern of a line out of its legend when the sample is a line.
  const dashedLabels = (chart) => Chart.defaults.plugins.legend.labels.generateLabels(chart).map((label) => {
    const { borderDash, borderWidth } = chart.data.datasets[label.datasetIndex];
    return { ...label, lineDash: borderDash, lineWidth: borderWidth };
  });

  const lastX = (view) => Math.max(...view.series.flatMap((series) => series.data.slice(-1).map((point) => point.x)));

  const configuration = (data, view) => {
    const line = data.type === 'line';
    const x = axis(data.x, line ? { type: 'linear', min: 0, max: lastX(view) } : {});
    x.ticks.includeBounds = false;
    if (data.tokens) x.ticks.callback = tokens;
    if (!line) x.grid.display = false;
    const y = axis(view.y, { beginAtZero: data.zero });
    return {
      type: data.type,
      data: { labels: line ? undefined : data.labels, datasets: view.series.map(line ? lineStyle : barStyle) },
      options: {
        animation: false, responsive: true, maintainAspectRatio: false, locale: 'en',
        interaction: { mode: line ? 'nearest' : 'index', axis: 'x', intersect: false },
        scales: { x, y },
        plugins: {
          legend: {
            position: 'top', align: 'start',
            labels: {
              generateLabels: line ? dashedLabels : Chart.defaults.plugins.legend.labels.generateLabels,
              color: color('--ink'), usePointStyle: line, pointStyle: 'line', pointStyleWidth: 30, boxWidth: 11, boxHeight: line ? 8 : 11, padding: 14,
            },
          },
          tooltip: {
            callbacks: {
              title: (items) => (!items.length ? '' : !line ? items[0].label : data.tokens ? tokens(items[0].parsed.x) + ' tokens' : short(items[0].parsed.x)),
              label: (item) => item.dataset.label + ': ' + short(item.parsed.y),
            },
          },
        },
      },
    };
  };

  const figures = [];
  const draw = (figure) => {
    if (figure.chart) figure.chart.destroy();
    figure.chart = new Chart(figure.canvas, configuration(figure.data, figure.data.views[figure.view]));
  };

  const addButtons = (element, figure) => {
    const group = document.createElement('div');
    group.className = 'views';
    group.setAttribute('role', 'group');
    group.setAttribute('aria-label', 'What the figure shows');
    const buttons = figure.data.views.map((view, i) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = view.name;
      button.setAttribute('aria-pressed', String(i === 0));
      button.addEventListener('click', () => {
        buttons.forEach((other) => other.setAttribute('aria-pressed', String(other === button)));
        figure.view = i;
        draw(figure);
      });
      return button;
    });
    group.append(...buttons);
    element.prepend(group);
  };

  Chart.defaults.font.family = color('--sans');
  Chart.defaults.font.size = 12;
  for (const element of document.querySelectorAll('figure.chart')) {
    const data = JSON.parse(element.querySelector('script[type="application/json"]').textContent);
    const figure = { canvas: element.querySelector('canvas'), data, view: 0, chart: null };
    if (data.views.length > 1) addButtons(element, figure);
    figures.push(figure);
    draw(figure);
  }

  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => figures.forEach(draw));
  // On paper: light colours whatever the screen has, and a width that fits the sheet.
  addEventListener('beforeprint', () => {
    root.setAttribute('data-paper', '');
    for (const figure of figures) {
      draw(figure);
      const wide = figure.canvas.closest('figure').classList.contains('wide');
      figure.chart.resize(wide ? 660 : 320, wide ? 290 : 260);
    }
  });
  addEventListener('afterprint', () => {
    root.removeAttribute('data-paper');
    figures.forEach(draw);
  });
})();
